#include "group_reset.hpp"

#include "group/group_start.hpp"
#include "no_sessions.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace {

struct group_reset::impl {
    impl(
        host& l,
        lease_store& s,
        reset_request r,
        process_identity self,
        lapse_observer::process_gone gone,
        nanoseconds wait
    )
        : loop(l),
          store(s),
          request(std::move(r)),
          still(l, wait),
          sessions(l, s, request.force, ", or force the reset", std::move(self), std::move(gone), still) {}

    void read_rows();
    void group_was_read(const std::optional<group_row>& group);
    void write_group();
    void write_next();
    void written(const result<void>& outcome);
    void reread();
    void again(const error& why, std::function<void()> what);
    void finish(result<reset_report> outcome);

    host& loop;
    lease_store& store;
    reset_request request;
    patience still;
    no_sessions sessions;
    lifetime alive;
    completion<reset_report> done;

    std::optional<group_row> group;
    reset_plan plan;
    std::size_t next{0};
    reset_report report;
};

void group_reset::impl::finish(result<reset_report> outcome) {
    if (auto tell = std::exchange(done, {})) tell(std::move(outcome));
}

void group_reset::impl::again(const error& why, std::function<void()> what) {
    if (!still.lasts(why)) return finish(tl::unexpected(why));
    loop.call_at(loop.now() + patience::pause, alive.guard(std::move(what)));
}

void group_reset::impl::read_rows() {
    store.read(std::monostate{}, alive.guard([this](result<std::optional<lease_row>> outcome) {
        if (!outcome) return again(outcome.error(), [this] { read_rows(); });
        if (*outcome) {
            group_was_read(std::get<group_row>(**outcome));
        } else {
            group_was_read(std::nullopt);
        }
    }));
}

void group_reset::impl::group_was_read(const std::optional<group_row>& found) {
    group = found;
    if (group) {
        if (auto known = check_format(*group); !known) return finish(tl::unexpected(known.error()));
    }
    store.list_shards(alive.guard([this](result<std::vector<shard_row>> rows) {
        if (!rows) return again(rows.error(), [this] { read_rows(); });
        if (auto why = unreadable_in(*rows)) return finish(tl::unexpected(std::move(*why)));
        plan = plan_reset(request, group, *rows, [this] { return loop.random(); });
        plan.group ? write_group() : write_next();
    }));
}

void group_reset::impl::write_group() {
    store.write(*plan.group, group->version, alive.guard([this](result<void> outcome) {
        if (!outcome) return again(outcome.error(), [this] { read_rows(); });
        write_next();
    }));
}

void group_reset::impl::write_next() {
    if (next == plan.shards.size()) return finish(report);
    auto& row = plan.shards[next];
    row.updated_at = loop.wall();
    store.write(row, version{row.version.value() - 1}, alive.guard([this](const result<void>& outcome) {
        written(outcome);
    }));
}

void group_reset::impl::written(const result<void>& outcome) {
    if (!outcome) return again(outcome.error(), [this] { reread(); });
    ++report.shards_reset;
    ++next;
    still.progress();
    write_next();
}

// The row decides: it bears our write id, or it is reset as it now stands, or it is gone.
void group_reset::impl::reread() {
    store.read(plan.shards[next].shard, alive.guard([this](result<std::optional<lease_row>> outcome) {
        if (!outcome) return again(outcome.error(), [this] { reread(); });
        auto& planned = plan.shards[next];
        const auto* row = *outcome ? &std::get<shard_row>(**outcome) : nullptr;
        if (row == nullptr || row->write_id == planned.write_id) return written({});
        planned = reset_row(*row, planned.epoch, write_id{loop.random()});
        write_next();
    }));
}

group_reset::group_reset(
    host& loop,
    lease_store& store,
    reset_request request,
    process_identity self,
    lapse_observer::process_gone gone,
    nanoseconds wait
)
    : impl_(std::make_unique<impl>(loop, store, std::move(request), std::move(self), std::move(gone), wait)) {
}

group_reset::~group_reset() = default;

void group_reset::start(completion<reset_report> done) {
    impl_->done = std::move(done);
    impl_->sessions.start([this](result<std::size_t> ended) {
        if (!ended) return impl_->finish(tl::unexpected(std::move(ended.error())));
        impl_->report.sessions_ended = *ended;
        impl_->read_rows();
    });
}

}  // namespace millrace
