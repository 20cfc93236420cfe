#include "scheduler.hpp"

#include <algorithm>

namespace millrace::sim {

namespace {

constexpr auto world_epoch = wall_time{milliseconds{1'767'225'600'000}};  // 2026-01-01T00:00:00Z

}  // namespace

wall_time wall_at(world_time t) {
    return world_epoch + std::chrono::floor<milliseconds>(t);
}

scheduler::ticket scheduler::at(world_time when, std::function<void()> what) {
    const ticket key{std::max(when, now_), sequence_++};
    queue_.emplace(key, std::move(what));
    return key;
}

bool scheduler::step() {
    if (queue_.empty()) return false;
    auto next = queue_.extract(queue_.begin());
    now_ = next.key().first;
    ++steps_;
    next.mapped()();
    return true;
}

void scheduler::run_until(world_time until) {
    while (!queue_.empty() && queue_.begin()->first.first <= until)
        step();
    now_ = std::max(now_, until);
}

sim_host::sim_host(scheduler& world, rng& random, clock_error clock, log_sink* log)
    : world_(world),
      random_(random),
      clock_(clock),
      log_(log != nullptr ? log : &null_log()),
      state_(std::make_shared<shared_state>()) {}

sim_host::~sim_host() {
    crash();
}

nanoseconds sim_host::to_local(world_time t) const {
    return t + nanoseconds{t.count() / 1'000'000 * clock_.drift_per_million} + clock_.offset;
}

world_time sim_host::to_world(nanoseconds local) const {
    const auto elapsed = (local - clock_.offset).count();
    const auto scale = 1'000'000 + clock_.drift_per_million;
    auto t = world_time{elapsed / scale * 1'000'000 + elapsed % scale * 1'000'000 / scale};
    while (to_local(t) < local)
        t += nanoseconds{1};  // integer division may land a few ticks early
    return t;
}

mono_time sim_host::now() const {
    return mono_time{to_local(world_.now())};
}

wall_time sim_host::wall() const {
    const auto local = to_local(world_.now()) - clock_.offset + clock_.wall_offset;
    return wall_at(local);
}

host::timer sim_host::enqueue(world_time when, std::function<void()> what) {
    enqueue_as(next_timer_++, when, std::move(what));
    return next_timer_ - 1;
}

void sim_host::enqueue_as(timer id, world_time when, std::function<void()> what) {
    auto fire = [state = std::weak_ptr(state_), id, what = std::move(what)]() mutable {
        const auto self = state.lock();
        if (!self || self->crashed || self->timers.erase(id) == 0) return;
        if (self->paused) {
            self->held.emplace(id, std::move(what));
        } else {
            what();
        }
    };
    state_->timers.emplace(id, world_.at(when, std::move(fire)));
}

host::timer sim_host::call_at(mono_time when, std::function<void()> what) {
    return enqueue(to_world(when.time_since_epoch()), std::move(what));
}

void sim_host::cancel(timer which) {
    state_->held.erase(which);
    if (const auto found = state_->timers.find(which); found != state_->timers.end()) {
        world_.cancel(found->second);
        state_->timers.erase(found);
    }
}

void sim_host::post(std::function<void()> what) {
    enqueue(world_.now(), std::move(what));
}

void sim_host::pause() {
    state_->paused = true;
}

void sim_host::resume() {
    if (!state_->paused || state_->crashed) return;
    state_->paused = false;
    for (auto& [id, what] : std::exchange(state_->held, {}))
        enqueue_as(id, world_.now(), std::move(what));  // it can still be cancelled by its name
}

void sim_host::crash() {
    state_->crashed = true;
    state_->held.clear();
    for (const auto& [id, ticket] : state_->timers)
        world_.cancel(ticket);
    state_->timers.clear();
}

}  // namespace millrace::sim
