#include "keeper.hpp"

#include "assert.hpp"
#include "process_identity.hpp"

#include <utility>

namespace millrace {

/// Carries the session's news from the keeper's thread to the main loop.
class keeper::reports final : public session_listener {
public:
    reports(host& loop, const lifetime& alive, session_listener& to) : loop_(loop), alive_(alive), to_(to) {}

    void session_started(const incarnation& mine) override {
        loop_.post(alive_.guard([this, mine] { to_.session_started(mine); }));
    }

    void session_ended(const incarnation& mine, const error& why) override {
        loop_.post(alive_.guard([this, mine, why] { to_.session_ended(mine, why); }));
    }

private:
    host& loop_;
    const lifetime& alive_;
    session_listener& to_;
};

keeper::keeper(host& loop, session_options options, process_identity self, session_listener& listener)
    : loop_(loop),
      options_(std::move(options)),
      self_(std::move(self)),
      home_(loop.log()),
      reports_(std::make_unique<reports>(loop, alive_, listener)) {}

keeper::~keeper() {
    if (!thread_.joinable()) return;
    home_.stop();
    thread_.join();
}

result<void> keeper::start(const store_opener& open) {
    MILLRACE_ASSERT(!session_);
    auto store = open(home_);
    if (!store) return tl::unexpected(std::move(store.error()));
    store_ = std::move(*store);
    session_ = std::make_unique<session_driver>(
        home_,
        *store_,
        options_,
        self_,
        [](const process_identity& which) { return process_gone(which); },
        *reports_
    );
    session_->loop_turned(loop_.now());
    thread_ = std::thread([this] {
        session_->start();
        home_.run();
    });
    return {};
}

void keeper::stop(completion<void> done) {
    if (!session_) {
        loop_.post(alive_.guard([done = std::move(done)] { done({}); }));
        return;
    }
    auto on_loop = alive_.guard(std::move(done));
    home_.post([this, on_loop = std::move(on_loop)] {
        session_->stop([this, on_loop](const result<void>& outcome) {
            loop_.post([on_loop, outcome] { on_loop(outcome); });
        });
    });
}

mono_time keeper::deadline(const incarnation& of) const {
    return session_ ? session_->deadline(of) : mono_time::min();
}

void keeper::note_change() {
    if (session_) session_->note_change();
}

void keeper::loop_turned(mono_time now) {
    if (session_) session_->loop_turned(now);
}

}  // namespace millrace
