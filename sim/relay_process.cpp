#include "relay_process.hpp"

#include <utility>

namespace millrace::sim {

shard_id outbox_shard() {
    return shard_id{"outbox"};
}

class relay_process::lister final : public shard_lister {
public:
    explicit lister(host& home) : home_(home) {}

    void list_shards(completion<stream_listing> done) override {
        stream_listing listing{
            "outbox-1", home_.wall(), std::nullopt, {{outbox_shard(), {}, false, "0", "0"}}};
        home_.post([done = std::move(done), listing = std::move(listing)] { done(listing); });
    }

private:
    host& home_;
};

/// Shows the oracle what a relay asks to have buried.
class relay_process::watched_outbox final : public outbox_source {
public:
    watched_outbox(
        std::unique_ptr<outbox_source> inner,
        relay_oracle& oracle,
        const surroundings& around,
        std::string who
    )
        : inner_(std::move(inner)),
          oracle_(oracle),
          trace_(around.events),
          health_(around.health),
          who_(std::move(who)) {}

    void fetch(fetch_request request, completion<fetch_reply> done) override {
        if (!trace_.on()) return inner_->fetch(std::move(request), std::move(done));
        auto asked = fmt::format("fetches {} rows after {}, gaps", request.rows_max, request.after.value());
        for (const auto& gap : request.gaps)
            asked += fmt::format(" {}-{}", gap.first.value(), gap.last.value());
        inner_->fetch(
            std::move(request),
            [this, asked = std::move(asked), done = std::move(done)](result<fetch_reply> reply) {
                trace_.say(who_, "{}: {}", asked, reply ? ids(*reply) : reply.error().detail);
                done(std::move(reply));
            }
        );
    }
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override {
        inner_->remove(
            std::move(delivered),
            std::move(mark),
            mine,
            [this, done = std::move(done)](result<std::uint64_t> deleted) {
                if (!deleted) health_.trouble(who_);
                done(std::move(deleted));
            }
        );
    }
    void bury(bury_request request, epoch mine, completion<void> done) override {
        oracle_.buries(request, mine);
        inner_->bury(std::move(request), mine, std::move(done));
    }
    void start(completion<outbox_start> done) override { inner_->start(std::move(done)); }
    void watch(std::function<void()> changed) override { inner_->watch(std::move(changed)); }

private:
    static std::string ids(const fetch_reply& reply) {
        std::string text = "ahead";
        for (const auto& row : reply.ahead->rows())
            text += fmt::format(" {}", row.id.value());
        text += ", filled";
        for (const auto& row : reply.filled->rows())
            text += fmt::format(" {}", row.id.value());
        return text + fmt::format(", {} writers", reply.writers.size());
    }

    std::unique_ptr<outbox_source> inner_;
    relay_oracle& oracle_;
    trace& trace_;
    health_book& health_;
    std::string who_;
};

/// Shows the oracle and the trace what a relay hands over and what becomes of it.
class relay_process::watched_sink final : public event_sink {
public:
    watched_sink(std::unique_ptr<event_sink> inner, relay_oracle& oracle, trace& t, std::string who)
        : inner_(std::move(inner)), oracle_(oracle), trace_(t), who_(std::move(who)) {}

    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override {
        std::vector<row_id> ids;
        ids.reserve(rows.size());
        for (const auto& row : rows)
            ids.push_back(row.row->id);
        const auto* name = where == channel::main ? "main" : "probe";
        if (trace_.on()) trace_.say(who_, "publishes on {}{}", name, list(ids));
        oracle_.book().handed(who_, mine, ids);
        inner_->publish(
            where,
            std::move(rows),
            mine,
            [this, name, mine, ids = std::move(ids), done = std::move(done)](result<publish_outcome> outcome
            ) {
                const auto what = [&] { return outcome ? failures(*outcome) : outcome.error().detail; };
                if (trace_.on()) trace_.say(who_, "published on {}{}: {}", name, list(ids), what());
                oracle_.book().answered(who_, mine, ids, outcome);
                done(std::move(outcome));
            }
        );
    }
    void reset_main(completion<void> done) override {
        trace_.say(who_, "resets main");
        inner_->reset_main([this, done = std::move(done)](result<void> outcome) {
            trace_.say(who_, "main was {}", outcome ? "reset" : "not reset: " + outcome.error().detail);
            done(std::move(outcome));
        });
    }
    [[nodiscard]] std::optional<error> suspect(const outbox_row& row) const override {
        return inner_->suspect(row);
    }
    [[nodiscard]] bool awaits(const outbox_row& row) const override { return inner_->awaits(row); }
    void watch(std::function<void()> changed) override { inner_->watch(std::move(changed)); }
    [[nodiscard]] capacity limits() const override { return inner_->limits(); }

private:
    static std::string list(const std::vector<row_id>& ids) {
        std::string text;
        for (const auto id : ids)
            text += fmt::format(" {}", id.value());
        return text;
    }
    static std::string failures(const publish_outcome& outcome) {
        std::string text = outcome.failures.empty() ? "all" : "not";
        for (const auto& failure : outcome.failures)
            text += fmt::format(
                " {} ({}{})",
                failure.id.value(),
                name_of(failure.why.code),
                failure.shared_blame ? ", shared" : ""
            );
        return text;
    }

    std::unique_ptr<event_sink> inner_;
    relay_oracle& oracle_;
    trace& trace_;
    std::string who_;
};

relay_process::relay_process(
    const surroundings& around, const relay_setup& setup, std::function<void(const error&)> exited
)
    : setup_(setup), member_(around, setup.member), exited_(std::move(exited)) {
    auto& loop = member_.loop();
    lister_ = std::make_unique<lister>(loop);
    source_ = std::make_unique<watched_outbox>(
        through<outbox_source>(
            around.between.outbox,
            std::make_unique<fake_outbox>(
                setup_.table, around.world, loop, around.random, setup_.outbox_faults
            )
        ),
        setup_.oracle,
        around,
        member_.name()
    );
    sink_ = std::make_unique<watched_sink>(
        through<event_sink>(
            around.between.sink,
            std::make_unique<fake_sink>(
                setup_.service, around.world, loop, around.random, setup_.sink_faults, setup_.broker
            )
        ),
        setup_.oracle,
        around.events,
        member_.name()
    );
    relay_ = std::make_unique<relay_driver>(loop, *source_, *sink_, setup_.relay, [this] {
        return grant_ && grant_->guard->may_act();
    });
}

relay_process::~relay_process() {
    member_.end();
}

void relay_process::start() {
    relay_->on_stopped([this](const error& why) { failed(why); });
    member_.join(*lister_, *this);
    member_.start();
}

void relay_process::granted(const lease_grant& grant) {
    grant_ = grant;
    relay_->start(grant.epoch);
}

void relay_process::revoke(const shard_id& shard) {
    relay_->drain([this, shard](const result<void>& drained) {
        if (!drained && drained.error().detail.empty())
            member_.around().judge.broken("{}: a drain failed and does not say why", member_.name());
        if (!grant_) return;
        const auto mine = std::exchange(grant_, std::nullopt)->epoch;
        setup_.oracle.book().ended(member_.name(), mine);
        member_.group().release(shard, mine, [](const result<void>&) {});
    });
}

void relay_process::lost(const shard_id&, const error& why) {
    if (why.detail.empty())
        member_.around().judge.broken("{}: a lease was lost and nothing says why", member_.name());
    if (grant_) setup_.oracle.book().ended(member_.name(), grant_->epoch);
    grant_.reset();
    relay_->halt();
}

void relay_process::failed(const error& why) {
    auto& around = member_.around();
    if (why.detail.empty()) around.judge.broken("{} failed and does not say why", member_.name());
    around.world.at(around.world.now(), [exited = exited_, why] { exited(why); });
}

std::string relay_process::over_budget() const {
    // One round, read-ahead and gaps, may be under way when the window is full.
    const auto most = setup_.relay.window_bytes + 2 * setup_.relay.fetch_bytes;
    const auto used = relay_->counters().bytes_in_memory;
    return used > most ? fmt::format("{} bytes of rows, {} are allowed", used, most) : std::string{};
}

}  // namespace millrace::sim
