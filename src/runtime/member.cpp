#include "member.hpp"

#include "process_identity.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

namespace {

constexpr nanoseconds beat_max = std::chrono::milliseconds{250};

// Beyond the drain limit: what the group takes for its last writes, and then for the end of the session.
constexpr nanoseconds goodbye = std::chrono::milliseconds{800};

// Without a shard there is only the session to end, and nobody waits for that.
constexpr nanoseconds goodbye_empty_handed = std::chrono::milliseconds{1500};

}  // namespace

member::member(event_loop& loop, const member_settings& settings, keeper::store_opener open, worker_id worker)
    : loop_(loop),
      worker_(std::move(worker)),
      every_(std::min(beat_max, settings.lease / 10)),
      stop_limit_(settings.sharing.drain_limit + goodbye),
      open_(std::move(open)) {}

result<std::unique_ptr<member>> member::make(
    event_loop& loop,
    const member_settings& settings,
    keeper::store_opener open,
    shard_lister& lister,
    group_listener& listener
) {
    if (auto valid = settings.sharing.validate(); !valid) return tl::unexpected(std::move(valid.error()));
    const auto self = this_process();
    const auto id =
        settings.worker.value().empty() ? default_worker_id(self, loop.random()) : settings.worker;
    const session_options session{.worker = id, .lease = settings.lease};
    if (auto valid = session.validate(); !valid) return tl::unexpected(std::move(valid.error()));

    std::unique_ptr<member> made(new member(loop, settings, std::move(open), id));
    auto store = made->open_(loop);
    if (!store) return tl::unexpected(std::move(store.error()));
    made->store_ = std::move(*store);
    if (!settings.sharing.all_shards) {
        session_listener& news = *made;
        made->keeper_ = std::make_unique<keeper>(loop, session, self, news);
    }
    made->group_ = std::make_unique<group_driver>(
        loop,
        *made->store_,
        lister,
        made->keeper_.get(),
        settings.sharing,
        self,
        [](const process_identity& which) { return process_gone(which); },
        listener
    );
    return made;
}

member::~member() = default;

result<void> member::start() {
    if (keeper_) {
        if (auto started = keeper_->start(open_); !started) return started;
    }
    started_ = true;
    group_->start();
    beat();
    return {};
}

void member::beat() {
    const auto now = loop_.now();
    if (keeper_) keeper_->loop_turned(now);
    if (on_beat_) on_beat_();
    // As a rule, when the group looks at its workers.
    loop_.call_between(now + every_, now + 2 * every_, alive_.guard([this] { beat(); }));
}

void member::stop(completion<void> done) {
    const auto once = std::make_shared<completion<void>>(std::move(done));
    const auto finish = [once](const result<void>& outcome) {
        if (auto call = std::exchange(*once, nullptr)) call(outcome);
    };
    if (!started_) return loop_.post(alive_.guard([finish] { finish({}); }));
    const auto limit = group_->shards_held() == 0 ? std::min(stop_limit_, goodbye_empty_handed) : stop_limit_;
    loop_.call_at(loop_.now() + limit, alive_.guard([finish] {
        finish(fail(
            errc::unavailable,
            "the group's state did not answer while this worker left; its session will lapse",
            retry_advice::never,
            true
        ));
    }));
    group_->stop(alive_.guard([this, finish](const result<void>& left) {
        if (!keeper_) return finish(left);
        keeper_->stop([left, finish](const result<void>& ended) { finish(left ? ended : left); });
    }));
}

std::optional<error> member::trouble() const {
    auto why = group_->trouble();
    return why ? why : session_over_;
}

void member::session_started(const incarnation& mine) {
    session_over_.reset();
    group_->session_started(mine);
}

void member::session_ended(const incarnation& mine, const error& why) {
    session_over_ = why;
    group_->session_ended(mine, why);
}

}  // namespace millrace
