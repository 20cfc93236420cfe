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

namespace {

/// Notes each failed request: what keeps a process from being punctual.
class watched_store final : public lease_store {
public:
    watched_store(std::unique_ptr<lease_store> inner, health_book& health, std::string who)
        : inner_(std::move(inner)), health_(health), who_(std::move(who)) {}

    void list_workers(completion<std::vector<worker_row>> done) override {
        inner_->list_workers(watched(std::move(done)));
    }
    void list_shards(completion<std::vector<shard_row>> done) override {
        inner_->list_shards(watched(std::move(done)));
    }
    void read(lease_key key, completion<std::optional<lease_row>> done) override {
        inner_->read(std::move(key), watched(std::move(done)));
    }
    void write(lease_row row, std::optional<version> expected, completion<void> done) override {
        inner_->write(std::move(row), expected, watched(std::move(done)));
    }
    void remove(lease_key key, version expected, completion<void> done) override {
        inner_->remove(std::move(key), expected, watched(std::move(done)));
    }

private:
    template <class T>
    completion<T> watched(completion<T> done) {
        return [&health = health_, who = who_, done = std::move(done)](result<T> outcome) {
            if (!outcome && outcome.error().code != errc::conflict) health.trouble(who);
            done(std::move(outcome));
        };
    }

    std::unique_ptr<lease_store> inner_;
    health_book& health_;
    std::string who_;
};

}  // namespace

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
    const auto watched = [&](std::unique_ptr<lease_store> inner) {
        return std::make_unique<watched_store>(std::move(inner), around_.health, name_);
    };
    keeper_store_ = watched(through(around_.between.keeper_store, store(keeper_)));
    loop_store_ = watched(through(around_.between.loop_store, store(loop_)));
    if (setup_.group.all_shards) return;
    session_ = std::make_unique<session_driver>(
        keeper_,
        *keeper_store_,
        setup_.session,
        setup_.process,
        around_.gone,
        static_cast<session_listener&>(*this)
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

void member::jump_wall(nanoseconds by) {
    keeper_.jump_wall(by);
    loop_.jump_wall(by);
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
