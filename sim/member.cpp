#include "member.hpp"

#include <utility>

namespace millrace::sim {

void trace_log::write(log_level level, std::string_view event, std::initializer_list<log_field> fields) {
    std::string line{event};
    for (const auto& field : fields) {
        line += fmt::format(" {}={}", field.name, field.value);
        if (level >= log_level::warning && field.name == "why" && field.value.empty())
            verdicts_.broken("{}: {} does not say why", who_, event);
    }
    trace_.say(who_, "{}", line);
}

member::member(const surroundings& around, const member_setup& setup)
    : around_(around),
      setup_(setup),
      name_(setup.process.host + "/" + std::to_string(setup.process.pid)),
      log_(around.events, around.judge, name_),
      keeper_(around.world, around.random, setup.clock, &log_),
      loop_(around.world, around.random, setup.clock, &log_) {
    const auto store = [&](sim_host& home) -> std::unique_ptr<lease_store> {
        return std::make_unique<fake_lease_store>(
            setup_.table, around_.world, home, around_.random, setup_.store, name_
        );
    };
    keeper_store_ = through(around_.between.keeper_store, store(keeper_));
    loop_store_ = through(around_.between.loop_store, store(loop_));
    if (setup_.group.all_shards) return;
    session_ = std::make_unique<session_driver>(
        keeper_, *keeper_store_, setup_.session, setup_.process, static_cast<session_listener&>(*this)
    );
    if (around_.between.session) view_ = around_.between.session(*session_);
}

member::~member() {
    end();
}

void member::join(shard_lister& lister, group_listener& listener) {
    session_view* view = view_ ? view_.get() : session_.get();
    group_ = std::make_unique<group_driver>(
        loop_, *loop_store_, lister, view, setup_.group, setup_.process, around_.gone, listener
    );
}

void member::start() {
    if (session_) {
        keeper_.post([this] { session_->start(); });
        beat();
    }
    group_->start();
}

void member::beat() {
    session_->loop_turned(loop_.now());
    loop_.call_at(loop_.now() + setup_.session.lease / 10, [this] { beat(); });
}

void member::stop(completion<void> done) {
    group_->stop([this, done = std::move(done)](const result<void>& left) {
        if (!session_) return done(left);
        keeper_.post([this, done, left] {
            session_->stop([this, done, left](const result<void>& ended) {
                loop_.post([done, outcome = left ? ended : left] { done(outcome); });
            });
        });
    });
}

void member::session_started(const incarnation& mine) {
    loop_.post([this, mine] { group_->session_started(mine); });
}

void member::session_ended(const incarnation& mine, const error& why) {
    if (why.detail.empty()) around_.judge.broken("{}: a session ended and nothing says why", name_);
    loop_.post([this, mine, why] { group_->session_ended(mine, why); });
}

void member::pause() {
    keeper_.pause();
    loop_.pause();
}

void member::resume() {
    keeper_.resume();
    loop_.resume();
}

void member::end() {
    keeper_.crash();
    loop_.crash();
    group_.reset();
    view_.reset();
    session_.reset();
}

}  // namespace millrace::sim
