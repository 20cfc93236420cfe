#include "epoch_raiser.hpp"

#include "overload.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace millrace {

epoch_raiser::epoch_raiser(host& loop, lease_store& store, shard_id shard, incarnation owner)
    : loop_(loop),
      store_(store),
      shard_(std::move(shard)),
      owner_(std::move(owner)),
      timer_(loop),
      log_(loop) {}

void epoch_raiser::raise(std::function<void(epoch)> done) {
    cancel();
    done_ = std::move(done);
    machine_ = std::make_unique<epoch_raise>(shard_, owner_, highest_, [this] { return loop_.random(); });
    carry_out(machine_->begin());
}

void epoch_raiser::cancel() {
    alive_.renew();
    timer_.cancel();
    machine_.reset();
    done_ = nullptr;
    heard_.reset();
    trouble_.reset();
}

template <class T>
void epoch_raiser::hear(const result<T>& outcome) {
    if (outcome || outcome.error().code == errc::conflict)
        heard_.answered(loop_.now());
    else
        heard_.failed(loop_.now());
}

void epoch_raiser::step(const epoch_raise::event& what) {
    if (const auto next = machine_->step(loop_.now(), what)) carry_out(*next);
    if (!machine_) return;
    if (const auto wake = machine_->wake()) {
        timer_.set(*wake, [this] { step(epoch_raise::timer{}); });
    }
}

void epoch_raiser::carry_out(const epoch_raise::action& what) {
    std::visit(
        overload{
            [&](const epoch_raise::read_row&) {
                heard_.asked(loop_.now());
                store_.read(shard_, alive_.guard([this](const result<std::optional<lease_row>>& read) {
                    hear(read);
                    if (!read) return step(epoch_raise::row_read{tl::unexpected(read.error())});
                    std::optional<shard_row> row;
                    if (*read) row = std::get<shard_row>(**read);
                    step(epoch_raise::row_read{std::move(row)});
                }));
            },
            [&](const epoch_raise::read_group&) {
                heard_.asked(loop_.now());
                store_.read(
                    std::monostate{}, alive_.guard([this](const result<std::optional<lease_row>>& read) {
                        hear(read);
                        if (!read) return step(epoch_raise::group_read{tl::unexpected(read.error())});
                        std::optional<group_row> row;
                        if (*read) row = std::get<group_row>(**read);
                        step(epoch_raise::group_read{std::move(row)});
                    })
                );
            },
            [&](const epoch_raise::write_row& a) {
                auto row = a.row;
                row.updated_at = loop_.wall();
                heard_.asked(loop_.now());
                store_.write(std::move(row), a.expected, alive_.guard([this](const result<void>& written) {
                    hear(written);
                    step(epoch_raise::row_written{written});
                }));
            },
            [&](const epoch_raise::raised& a) {
                const auto done = std::exchange(done_, nullptr);
                highest_ = std::max(highest_, a.epoch);
                cancel();
                done(a.epoch);
            },
            [&](const epoch_raise::trouble& a) {
                trouble_ = a.why;
                log_.write(
                    log_level::warning,
                    "epoch.raise_failed",
                    {{"shard", shard_.value()},
                     {"code", std::string(name_of(a.why.code))},
                     {"detail", a.why.detail}},
                    a.why.detail
                );
            },
        },
        what
    );
}

}  // namespace millrace
