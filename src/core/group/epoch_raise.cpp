#include "group/epoch_raise.hpp"

#include "overload.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

namespace {

constexpr nanoseconds pause_min = std::chrono::milliseconds{50};
constexpr nanoseconds pause_max = std::chrono::seconds{2};
constexpr std::size_t unproved_max = 16;
constexpr int refused_in_a_row_max = 4;

}  // namespace

epoch_raise::epoch_raise(
    shard_id shard, incarnation owner, millrace::epoch above, std::function<std::uint64_t()> random
)
    : shard_(std::move(shard)),
      owner_(std::move(owner)),
      above_(above),
      random_(std::move(random)),
      wait_(pause_min, pause_max) {}

epoch_raise::action epoch_raise::begin() {
    return read_row{};
}

std::optional<epoch_raise::action> epoch_raise::step(mono_time now, const event& what) {
    return std::visit(
        overload{
            [&](const timer&) -> std::optional<action> {
                if (!retry_at_ || now < *retry_at_) return std::nullopt;
                retry_at_.reset();
                return read_row{};
            },
            [&](const row_read& reply) -> std::optional<action> {
                if (!reply.outcome) return retry(now, reply.outcome.error());
                return decide(*reply.outcome);
            },
            [&](const group_read& reply) -> std::optional<action> {
                if (!reply.outcome) return retry(now, reply.outcome.error());
                if (*reply.outcome) above_ = std::max(above_, (*reply.outcome)->epoch_floor);
                shard_row row;
                row.shard = shard_;
                // Not from one: a late write on a deleted row of that name must not fit the new one.
                row.version = version{random_() >> 40};
                return write(std::move(row), std::nullopt);
            },
            [&](const row_written& reply) -> std::optional<action> {
                if (reply.outcome) return raised{sent_->epoch};
                const auto& why = reply.outcome.error();
                const bool look = why.in_doubt || why.code == errc::conflict;
                // Others may raise it, too; but a store that always refuses must not make us spin.
                if (look && ++refused_ < refused_in_a_row_max) return read_row{};
                refused_ = 0;
                return retry(now, why);
            },
        },
        what
    );
}

epoch_raise::action epoch_raise::decide(const std::optional<shard_row>& row) {
    if (!row) return read_group{};
    if (std::find(unproved_.begin(), unproved_.end(), row->write_id) != unproved_.end()) {
        return raised{row->epoch};
    }
    return write(*row, row->version);
}

epoch_raise::action epoch_raise::write(shard_row next, std::optional<version> expected) {
    next.owner = owner_;
    next.epoch = millrace::epoch{std::max(next.epoch, above_).value() + 1};
    next.version = version{next.version.value() + 1};
    next.write_id = write_id{random_()};
    if (unproved_.size() == unproved_max) unproved_.erase(unproved_.begin());
    unproved_.push_back(next.write_id);
    sent_ = next;
    return write_row{std::move(next), expected};
}

epoch_raise::action epoch_raise::retry(mono_time now, const error& why) {
    retry_at_ = now + wait_.next(random_());
    return trouble{why};
}

}  // namespace millrace
