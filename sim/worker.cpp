#include "worker.hpp"

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace millrace::sim {

namespace {

std::optional<checkpoint_place> place_of(const worker_setup& setup) {
    if (!setup.habits.commits) return std::nullopt;
    return checkpoint_place{"", "orders", "a group", setup.member.session.lease};
}

}  // namespace

/// The loop as a driver and its jobs see it: what a job posts arrives when the job has taken its time.
class worker::thread_host final : public host {
public:
    explicit thread_host(sim_host& loop) : loop_(loop) {}

    [[nodiscard]] mono_time now() const override { return loop_.now(); }
    [[nodiscard]] wall_time wall() const override { return loop_.wall(); }
    [[nodiscard]] std::uint64_t random() override { return loop_.random(); }
    timer call_at(mono_time when, std::function<void()> what) override {
        return loop_.call_at(when, std::move(what));
    }
    void cancel(timer which) override { loop_.cancel(which); }
    void post(std::function<void()> what) override {
        if (job_takes_) {
            loop_.call_at(loop_.now() + *job_takes_, std::move(what));
        } else {
            loop_.post(std::move(what));
        }
    }
    [[nodiscard]] log_sink& log() override { return loop_.log(); }

    void run_job(const std::function<void()>& job, nanoseconds takes) {
        job_takes_ = takes;
        job();
        job_takes_.reset();
    }

private:
    sim_host& loop_;
    std::optional<nanoseconds> job_takes_;
};

class worker::pool final : public handler_pool {
public:
    pool(thread_host& home, rng& random, const worker_setup& setup)
        : home_(home), random_(random), setup_(setup) {}

    void run(std::function<void()> job) override {
        const auto wait = upto(setup_.mended ? 1ms : setup_.habits.waits_max);
        const auto takes = upto(setup_.mended ? 1ms : setup_.habits.takes_max);
        home_.call_at(home_.now() + wait, [this, takes, job = std::move(job)] { home_.run_job(job, takes); });
    }

private:
    nanoseconds upto(nanoseconds span) {
        return nanoseconds{
            static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(span.count()) + 1))};
    }

    thread_host& home_;
    rng& random_;
    const worker_setup& setup_;
};

class worker::handler final : public record_handler {
public:
    handler(thread_host& home, sim_host& loop, rng& random, const worker_setup& setup, const std::string& who)
        : home_(home), loop_(loop), random_(random), setup_(setup), who_(who) {}

    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        setup_.oracle.handling(who_, batch->shard(), how.epoch, how.attempt, *batch);
        const auto& habits = setup_.habits;
        if (random_.chance(habits.later)) return handle_later(batch, how);
        const auto bad = first_poison(*batch);
        if (bad || (!setup_.mended && random_.chance(habits.fails))) {
            const auto upto = bad.value_or(random_.below(batch->records().size()));
            const auto settled = upto > 0 && (bad || random_.chance(habits.partial));
            if (settled) {
                settle(batch, how.epoch, 0, upto - 1);
                how.acknowledge.up_to(upto - 1);
            }
            all_failed(*batch, how.epoch, settled ? upto : 0);
            return fail(errc::handler_failed, "the simulated handler fails", retry_advice::after_delay);
        }
        if (!setup_.mended && random_.chance(habits.throws)) {
            all_failed(*batch, how.epoch, 0);
            throw std::runtime_error("the handler throws");
        }
        if (habits.commits) {
            if (commit(*batch, how)) return handled::all;
            all_failed(*batch, how.epoch, 0);
            return fail(errc::not_owner, "the shard is no longer ours");
        }
        settle(batch, how.epoch, 0, batch->records().size() - 1);
        return handled::all;
    }

    void assigned(const shard_grant& grant) override { grants_.insert_or_assign(grant.shard, grant); }

    void revoked(const shard_id& shard) override { setup_.oracle.book().revoked(shard); }

private:
    // One transaction of the handler: the effects of the batch, and the checkpoint in the shard's row if that
    // is as this grant left it.
    bool commit(const record_batch& batch, const delivery& how) {
        auto& grant = grants_.at(batch.shard());
        auto& rows = setup_.member.table;
        const auto* stored = rows.find(batch.shard());
        if (stored == nullptr || grant.epoch != how.epoch) return false;
        auto row = std::get<shard_row>(*stored);
        const auto at = row.checkpoint ? std::optional(row.checkpoint->position) : std::nullopt;
        if (row.owner != grant.owner || row.epoch != how.epoch || at != grant.checkpoint) return false;
        for (const auto& r : batch.records()) {
            setup_.oracle.done(batch.shard(), r.position);
            setup_.oracle.effect(batch.shard(), r.position);
            setup_.oracle.acknowledged(batch.shard(), how.epoch, r.position);
        }
        const auto& last = batch.records().back();
        const auto expected = row.version;
        row.version = version{expected.value() + 1};
        row.write_id = write_id{random_.next()};
        row.checkpoint = checkpoint{last.position, last.arrival};
        grant.checkpoint = last.position;
        return rows.write(row, expected, who_).has_value();
    }

    // Acknowledges each record at a time of its own.
    result<handled> handle_later(const std::shared_ptr<const record_batch>& batch, const delivery& how) {
        for (std::size_t i = 0; i < batch->records().size(); ++i) {
            const auto most = setup_.mended ? nanoseconds{1ms} : setup_.habits.takes_max;
            const auto span = static_cast<std::uint64_t>(most.count()) + 1;
            const auto when = loop_.now() + nanoseconds{static_cast<std::int64_t>(random_.below(span))};
            const auto fails =
                is_poison(batch->records()[i]) || (!setup_.mended && random_.chance(setup_.habits.fails / 4));
            if (!fails && !setup_.mended && random_.chance(setup_.habits.stuck)) {
                wait_for_mending(batch, i, how);
                continue;
            }
            loop_.call_at(when, [this, batch, i, fails, under = how.epoch, ack = how.acknowledge] {
                if (fails) {
                    setup_.oracle.failed(batch->shard(), under, batch->records()[i].position);
                    ack.fail(i, {errc::handler_failed, retry_advice::after_delay, false, "it fails later"});
                    return;
                }
                setup_.oracle.acknowledged(batch->shard(), under, batch->records()[i].position);
                ack.one(i);
            });
        }
        return handled::later;
    }

    void wait_for_mending(
        const std::shared_ptr<const record_batch>& batch, std::size_t i, const delivery& how
    ) {
        loop_.call_at(loop_.now() + 100ms, [this, batch, i, how] {
            if (!setup_.mended) return wait_for_mending(batch, i, how);
            setup_.oracle.acknowledged(batch->shard(), how.epoch, batch->records()[i].position);
            how.acknowledge.one(i);
        });
    }

    [[nodiscard]] bool is_poison(const record& r) const {
        if (setup_.mended && setup_.shard.on_failure != failure_policy::dead_letter) return false;
        const auto dice = rng{r.position.sequence.low64() * 31 + r.position.sub_sequence}.below(100);
        return dice < setup_.habits.poison;
    }

    [[nodiscard]] std::optional<std::size_t> first_poison(const record_batch& batch) const {
        for (std::size_t i = 0; i < batch.records().size(); ++i)
            if (is_poison(batch.records()[i])) return i;
        return std::nullopt;
    }

    // The driver must hear of it when the job's own report arrives, but may look at the reports of its
    // threads sooner.
    void settle(
        const std::shared_ptr<const record_batch>& batch, epoch under, std::size_t first, std::size_t last
    ) {
        for (auto i = first; i <= last; ++i)
            setup_.oracle.done(batch->shard(), batch->records()[i].position);
        home_.post([this, batch, under, first, last] {
            for (auto i = first; i <= last; ++i)
                setup_.oracle.acknowledged(batch->shard(), under, batch->records()[i].position);
        });
    }

    void all_failed(const record_batch& batch, epoch under, std::size_t from) {
        for (const auto& r : batch.records().subspan(from))
            setup_.oracle.failed(batch.shard(), under, r.position);
    }

    thread_host& home_;
    sim_host& loop_;
    rng& random_;
    const worker_setup& setup_;
    std::string who_;
    std::map<shard_id, shard_grant> grants_;
};

class worker::dead_letters final : public dead_letter_sink {
public:
    dead_letters(const surroundings& around, sim_host& loop, const worker_setup& setup)
        : judge_(around.judge),
          health_(around.health),
          setup_(setup),
          who_(setup.member.process.host + "/" + std::to_string(setup.member.process.pid)),
          link_(around.world, loop, around.random, setup.stream_faults, "the dead letters") {}

    void put(std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done)
        override {
        if (why.detail.empty()) judge_.broken("a dead letter does not say why");
        const auto under = setup_.oracle.book().latest(batch->shard(), who_);
        link_.change<void>(
            "put",
            [&oracle = setup_.oracle, batch = std::move(batch), index, under]() -> result<void> {
                oracle.acknowledged(batch->shard(), under, batch->records()[index].position);
                return {};
            },
            [this, done = std::move(done)](const result<void>& outcome) {
                if (!outcome) health_.trouble(who_);
                done(outcome);
            }
        );
    }

private:
    verdicts& judge_;
    health_book& health_;
    const worker_setup& setup_;
    std::string who_;
    link link_;
};

worker::worker(
    const surroundings& around, const worker_setup& setup, std::function<void(const error&)> exited
)
    : setup_(setup), member_(around, setup.member), exited_(std::move(exited)) {
    auto& loop = member_.loop();
    host_ = std::make_unique<thread_host>(loop);
    pool_ = std::make_unique<pool>(*host_, around.random, setup_);
    handler_ = through<record_handler>(
        around.between.handler, std::make_unique<handler>(*host_, loop, around.random, setup_, member_.name())
    );
    dead_letters_ = std::make_unique<dead_letters>(around, loop, setup_);
    source_ = through<record_source>(
        around.between.source,
        std::make_unique<fake_record_source>(
            setup_.stream, around.world, loop, around.random, setup_.stream_faults
        )
    );
    consumer_ = std::make_unique<consumer_driver>(
        *host_, *source_, *handler_, *pool_, dead_letters_.get(), setup_.shard, place_of(setup_)
    );
}

worker::~worker() {
    member_.end();
}

void worker::start() {
    consumer_->on_failed([this](const error& why) {
        auto& around = member_.around();
        if (why.detail.empty()) around.judge.broken("{} failed and does not say why", member_.name());
        around.world.at(around.world.now(), [exited = exited_, why] { exited(why); });
    });
    member_.join(*source_, *consumer_);
    consumer_->attach(member_.group());
    member_.start();
}

std::string worker::over_budget() const {
    // One read may be under way when the budget is full.
    const auto most = setup_.shard.memory_bytes + setup_.shard.read_bytes;
    const auto used = consumer_->counters().bytes_in_memory;
    return used > most ? fmt::format("{} bytes of records, {} are allowed", used, most) : std::string{};
}

}  // namespace millrace::sim
