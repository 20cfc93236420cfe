/// A consumer on a simulated host: a strict stream, a handler that does what the test says, a pool whose
/// calls take time, and leases that check what they are told.
#pragma once

#include "consumer_driver.hpp"
#include "fake_stream.hpp"
#include "scheduler.hpp"
#include "shard_driver.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::testing_shard {

using namespace std::chrono_literals;

/// Its deadline is the test's business.
class test_session final : public session_view {
public:
    [[nodiscard]] mono_time deadline(const incarnation&) const override { return until; }
    void note_change() override {}
    void loop_turned(mono_time) override {}

    mono_time until = mono_time::max();
};

class test_log final : public log_sink {
public:
    [[nodiscard]] bool enabled(log_level) const noexcept override { return true; }
    void write(log_level, std::string_view event, std::initializer_list<log_field>) override {
        ++events[std::string(event)];
    }

    std::map<std::string, int> events;
};

/// Runs each job some time later, as a thread of its own would; or keeps it until `let_go`.
class sim_pool final : public handler_pool {
public:
    explicit sim_pool(sim::scheduler& world) : world_(world) {}

    void run(std::function<void()> job) override {
        if (hold) {
            held.push_back(std::move(job));
        } else {
            world_.at(world_.now() + takes, std::move(job));
        }
    }
    void let_go() {
        for (auto& job : std::exchange(held, {}))
            job();
    }

    nanoseconds takes{1ms};
    bool hold{false};
    std::vector<std::function<void()>> held;

private:
    sim::scheduler& world_;
};

/// What the group would keep, with its rules.
class test_leases final : public shard_leases {
public:
    struct row {
        epoch mine;
        bool held{true};
        bool finished{false};
        std::optional<checkpoint> reached;
        std::uint64_t records{0};
    };

    explicit test_leases(host& loop) : loop_(loop) {}

    result<void> advance(const shard_id& shard, epoch e, checkpoint reached, std::uint64_t records) override {
        auto& r = rows[shard];
        EXPECT_TRUE(r.held && r.mine == e) << "advanced without the lease";
        EXPECT_TRUE(!r.reached || r.reached->position < reached.position) << "a checkpoint went back";
        r.reached = reached;
        r.records += records;
        return {};
    }
    void finish(const shard_id& shard, epoch e, completion<void> done) override {
        end(shard, e, true, std::move(done));
    }
    void release(const shard_id& shard, epoch e, completion<void> done) override {
        end(shard, e, false, std::move(done));
    }
    void discover_soon() override { ++discoveries; }
    [[nodiscard]] nanoseconds drain_limit() const override { return drain; }

    std::map<shard_id, row> rows;
    std::vector<error> refusals;  // of the next finishes or releases
    int discoveries{0};
    nanoseconds drain{10s};

private:
    void end(const shard_id& shard, epoch e, bool finish, completion<void> done) {
        auto& r = rows[shard];
        EXPECT_TRUE(r.held && r.mine == e) << "ended without the lease";
        result<void> how;
        if (!refusals.empty()) {
            how = tl::unexpected(refusals.front());
            refusals.erase(refusals.begin());
        } else {
            r.held = false;
            r.finished = finish;
        }
        loop_.post([done = std::move(done), how] { done(how); });
    }

    host& loop_;
};

/// Notes what it is told and does what `behave` says.
class test_handler final : public record_handler {
public:
    using behaviour =
        std::function<result<handled>(const std::shared_ptr<const record_batch>&, const delivery&)>;

    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        ++calls;
        std::string line = batch->shard().value().substr(batch->shard().value().size() - 1) + ":";
        for (const auto& r : batch->records())
            line += " " + std::string(r.data.value_or("-"));
        told.push_back(line + (how.attempt > 1 ? " attempt " + std::to_string(how.attempt) : ""));
        return behave ? behave(batch, how) : result<handled>{handled::all};
    }
    void assigned(const shard_grant& g) override { note("assigned", g.shard); }
    void revoked(const shard_id& s) override { note("revoked", s); }
    void lost(const shard_id& s) override { note("lost", s); }
    void finished(const shard_id& s) override { note("finished", s); }

    std::vector<std::string> told;
    int calls{0};
    behaviour behave;
    std::map<std::string, int> throws;  // how often each function still throws

private:
    void note(const std::string& what, const shard_id& s) {
        told.push_back(what + " " + s.value().back());
        if (throws.contains(what) && throws[what]-- > 0) throw std::runtime_error(what + " does not work");
    }
};

class test_dead_letters final : public dead_letter_sink {
public:
    explicit test_dead_letters(host& loop) : loop_(loop) {}

    void put(std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done)
        override {
        result<void> how;
        if (failures > 0) {
            --failures;
            how = fail(errc::unavailable, "the dead letters cannot be written");
        } else {
            stored.push_back(std::string(batch->records()[index].data.value()) + ": " + why.detail);
        }
        loop_.call_at(loop_.now() + 10ms, [done = std::move(done), how] { done(how); });
    }

    std::vector<std::string> stored;
    int failures{0};

private:
    host& loop_;
};

/// The strict stream, with an error of the test's choice for some shards.
class test_source final : public record_source {
public:
    test_source(sim::fake_record_source& real, host& loop) : real_(real), loop_(loop) {}

    void list_shards(completion<stream_listing> done) override { real_.list_shards(std::move(done)); }
    void open(shard_id shard, start_position start, completion<read_cursor> done) override {
        real_.open(std::move(shard), std::move(start), counted(std::move(done)));
    }
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override {
        if (const auto found = refuse.find(shard); found != refuse.end()) {
            loop_.post([done = std::move(done), why = found->second] { done(tl::unexpected(why)); });
        } else {
            real_.read(std::move(shard), std::move(cursor), limits, counted(std::move(done)));
        }
    }
    void watch(std::function<void()> changed) override { real_.watch(std::move(changed)); }

    std::map<shard_id, error> refuse;
    int in_flight{0};
    int in_flight_most{0};

private:
    template <class T>
    completion<T> counted(completion<T> done) {
        in_flight_most = std::max(in_flight_most, ++in_flight);
        return [this, done = std::move(done)](result<T> how) {
            --in_flight;
            done(std::move(how));
        };
    }

    sim::fake_record_source& real_;
    host& loop_;
};

struct ConsumerDriver : testing::Test {
    explicit ConsumerDriver(shard_options with = {}, sim::stream_options stream_with = {})
        : options(with), stream(world, random, stream_with) {}

    ~ConsumerDriver() override {
        if (guard) guard->drop();
    }

    /// Makes the consumer, with the options as they are now.
    void make() {
        auto owned = std::make_unique<test_leases>(loop);
        leases = owned.get();
        leases->drain = drain_limit;
        consumer = std::make_unique<consumer_driver>(loop, source, handler, pool, &dead_letters, options);
        consumer->attach(std::move(owned));
    }

    static shard_id shard(int number) {
        auto digits = std::to_string(number);
        return shard_id{"shardId-" + std::string(12 - digits.size(), '0') + digits};
    }

    /// Grants the shard from the checkpoint that the leases have, under the next epoch.
    void grant(int number, start_position start = from::trim_horizon{}) {
        if (!consumer) make();
        auto& row = leases->rows[shard(number)];
        row.held = true;
        row.mine = epoch{row.mine.value() + 1};
        guard = std::make_shared<lease_guard>(loop, &session, incarnation{"me"});
        guards.push_back(guard);
        consumer->granted({shard(number), row.mine, row.reached, {}, start, guard});
    }

    /// As the group does it: the guard first, then the listener.
    void lose(int number) {
        guard->drop();
        leases->rows[shard(number)].held = false;
        consumer->lost(shard(number), {errc::not_owner, retry_advice::never, false, "taken over"});
    }

    /// Appends records whose data counts from `first`.
    void append(int first, int last, const std::string& key = "k") {
        for (int i = first; i <= last; ++i)
            stream.append(key, std::to_string(i));
    }

    [[nodiscard]] std::string checkpoint_data(int number) const {
        const auto& at = leases->rows.at(shard(number)).reached;
        if (!at) return "";
        for (const auto& r : stream.find(shard(number))->records)
            if (r.position == at->position) return *r.data;
        return "no such record";
    }

    using lines = std::vector<std::string>;

    sim::scheduler world;
    sim::rng random{7};
    sim::faults plan{.latency_min = 1ms, .latency_max = 1ms};
    test_log log;
    sim::sim_host loop{world, random, {}, &log};
    shard_options options;
    sim::fake_stream stream;
    sim::fake_record_source client{stream, world, loop, random, plan};
    test_source source{client, loop};
    test_session session;
    test_handler handler;
    sim_pool pool{world};
    test_dead_letters dead_letters{loop};
    std::shared_ptr<lease_guard> guard;  // of the last grant
    std::vector<std::shared_ptr<lease_guard>> guards;
    test_leases* leases{nullptr};
    nanoseconds drain_limit{10s};
    std::unique_ptr<consumer_driver> consumer;
};

}  // namespace millrace::testing_shard
