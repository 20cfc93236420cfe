#include "group_worker.hpp"

#include "adapters.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace millrace {

group_worker::group_worker(event_loop& loop, group_desk& desk, const group_settings& settings)
    : loop_(loop),
      desk_(desk),
      settings_(settings),
      lister_(loop, settings.resources),
      unnamed_(2 * settings.lease) {}

result<void> group_worker::open(const url& state) {
    auto made = member::make(
        loop_,
        {.worker = settings_.worker, .lease = settings_.lease, .sharing = settings_.sharing},
        [state, group = group_key{"", settings_.name}, lease = settings_.lease](host& home) {
            return open_lease_store(state, group, home, used_under(lease));
        },
        lister_,
        *this
    );
    if (!made) return tl::unexpected(std::move(made.error()));
    member_ = std::move(*made);
    return {};
}

void group_worker::start() {
    member_->store().list_workers([this](const result<std::vector<worker_row>>& rows) {
        if (leaving_) return;
        if (!rows && rows.error().retry == retry_advice::never) return failed(rows.error());
        if (const auto started = member_->start(); !started) return failed(started.error());
        member_->on_beat([this] { look(); });
        if (settings_.sharing.all_shards) membership(0, 1);
    });
}

void group_worker::leave(completion<void> done) {
    leaving_ = true;
    const auto held = held_;
    for (const auto& [shard, one] : held) {
        // Asked back before, and not asked again.
        if (one->stop.stop_requested() && !one->ended) give_back(*one);
    }
    member_->stop(std::move(done));
}

result<void> group_worker::advance(const held_resource& held, position reached) {
    return member_->group().advance(shard_id(held.resource), held.epoch, {reached, loop_.wall()}, 1);
}

void group_worker::persist(const held_resource& held, completion<void> done) {
    member_->group().persist(shard_id(held.resource), held.epoch, std::move(done));
}

void group_worker::release(const held_resource& held, completion<void> done) {
    member_->group().release(shard_id(held.resource), held.epoch, std::move(done));
}

void group_worker::finish(const held_resource& held, completion<void> done) {
    member_->group().finish(
        shard_id(held.resource),
        held.epoch,
        [this, done = std::move(done)](const result<void>& outcome) {
            look();
            done(outcome);
        }
    );
}

void group_worker::finished(const std::string& resource, completion<bool> done) {
    member_->store().read(
        shard_id(resource),
        [done = std::move(done)](const result<std::optional<lease_row>>& row) {
            if (!row) return done(tl::unexpected(row.error()));
            done(*row && std::get<shard_row>(**row).finished_at.has_value());
        }
    );
}

error group_worker::why_not(const std::string& resource) const {
    const auto shards = member_->group().shards();
    const auto found = std::find_if(shards.begin(), shards.end(), [&](const shard_view& view) {
        return view.row.shard.value() == resource;
    });
    if (found != shards.end() && found->mine) {
        return {
            errc::conflict,
            retry_advice::never,
            false,
            fmt::format("resource \"{}\" is acquired by this worker already; use that lease", resource)};
    }
    if (found != shards.end() && found->other) {
        const std::chrono::duration<double> left =
            std::max(found->other->until - loop_.now(), nanoseconds::zero());
        return {
            errc::not_owner,
            retry_advice::after_delay,
            false,
            fmt::format(
                "resource \"{}\" is held by worker \"{}\" for {:.1f} s more, and longer with each heartbeat; "
                "wait longer or leave it",
                resource,
                found->other->worker.value(),
                left.count()
            )};
    }
    return {
        errc::unavailable,
        retry_advice::after_delay,
        false,
        fmt::format("resource \"{}\" was not free to be taken in time; wait longer", resource)};
}

void group_worker::granted(const lease_grant& grant) {
    std::optional<position> begin;
    if (grant.checkpoint) begin = grant.checkpoint->position;
    auto held =
        std::make_shared<held_resource>(held_resource{grant.shard.value(), grant.epoch, begin, grant.guard});
    held_[grant.shard] = held;
    {
        const std::lock_guard lock(desk_.mutex);
        desk_.ready.push_back(std::move(held));
    }
    desk_.changed.notify_all();
}

/// What nobody has acquired goes back at once, and so does everything when this
/// worker leaves.
void group_worker::revoke(const shard_id& shard) {
    const auto found = held_.find(shard);
    if (found == held_.end()) return;
    const auto held = found->second;
    const bool unused = take_from_desk(*held);
    held->stop.request_stop();
    if (unused || leaving_) give_back(*held);
}

void group_worker::give_back(const held_resource& held) {
    release(held, [this, resource = held.resource](const result<void>& outcome) {
        if (outcome) return;
        loop_.log().write(
            log_level::warning, "group.release", {{"resource", resource}, {"why", outcome.error().detail}}
        );
    });
}

void group_worker::lost(const shard_id& shard, const error& why) {
    loop_.log().write(log_level::warning, "group.lost", {{"resource", shard.value()}, {"why", why.detail}});
    const auto found = held_.find(shard);
    if (found == held_.end()) return;
    const auto held = std::move(found->second);
    held_.erase(found);
    take_from_desk(*held);
    held->stop.request_stop();
}

void group_worker::membership(std::size_t index, std::size_t total) {
    {
        const std::lock_guard lock(desk_.mutex);
        desk_.place = millrace::membership{index, total};
    }
    desk_.changed.notify_all();
}

void group_worker::failed(const error& why) {
    {
        const std::lock_guard lock(desk_.mutex);
        if (!desk_.failed) desk_.failed = why;
    }
    desk_.changed.notify_all();
}

/// Tells waiting threads what is finished by now.
void group_worker::look() {
    std::set<std::string> finished;
    const auto shards = member_->group().shards();
    for (const auto& resource : unnamed_.look(loop_.now(), shards)) {
        loop_.log().write(
            log_level::error,
            "group.unknown_resource",
            {{"resource", resource.value()},
             {"detail",
              fmt::format(
                  "nobody holds resource \"{}\" of the group, and this worker was not told of it; name the "
                  "same resources in every worker (one that was taken out on purpose may stay so)",
                  resource.value()
              )}}
        );
    }
    for (const auto& view : shards) {
        const auto& name = view.row.shard.value();
        const bool shared = std::binary_search(settings_.resources.begin(), settings_.resources.end(), name);
        if (shared && view.row.finished_at) finished.insert(name);
    }
    {
        const std::lock_guard lock(desk_.mutex);
        if (finished.size() == desk_.finished.size()) return;  // it only grows
        desk_.finished = std::move(finished);
    }
    desk_.changed.notify_all();
}

bool group_worker::take_from_desk(const held_resource& held) {
    const std::lock_guard lock(desk_.mutex);
    const auto found = std::find_if(desk_.ready.begin(), desk_.ready.end(), [&](const auto& ready) {
        return ready.get() == &held;
    });
    if (found == desk_.ready.end()) return false;
    desk_.ready.erase(found);
    return true;
}

}  // namespace millrace
