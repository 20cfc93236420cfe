/// A consumer on a simulated host: a strict stream, and the parts of `test_handler.hpp` and
/// `test_leases.hpp`.
#pragma once

#include "consumer_driver.hpp"
#include "fake_stream.hpp"
#include "scheduler.hpp"
#include "test_handler.hpp"
#include "test_leases.hpp"
#include "unit/remembered_log.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::testing_shard {

using namespace std::chrono_literals;

/// The strict stream, with an error of the test's choice for some shards.
class test_source final : public record_source {
public:
    test_source(sim::fake_record_source& real, host& loop) : real_(real), loop_(loop) {}

    void list_shards(completion<stream_listing> done) override { real_.list_shards(std::move(done)); }
    void open(shard_id shard, start_position start, completion<read_cursor> done) override {
        if (const auto found = refuse_open.find(shard); found != refuse_open.end()) {
            return loop_.post([done = std::move(done), why = found->second] { done(tl::unexpected(why)); });
        }
        real_.open(std::move(shard), std::move(start), counted(std::move(done)));
    }
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override {
        if (const auto later = refuse_after_first.extract(shard); !later.empty()) {
            refuse[shard] = later.mapped();
            real_.read(std::move(shard), std::move(cursor), limits, counted(std::move(done)));
        } else if (const auto found = refuse.find(shard); found != refuse.end()) {
            loop_.post([done = std::move(done), why = found->second] { done(tl::unexpected(why)); });
        } else {
            real_.read(std::move(shard), std::move(cursor), limits, counted(std::move(done)));
        }
    }
    void watch(std::function<void()> changed) override { real_.watch(std::move(changed)); }

    std::map<shard_id, error> refuse;
    std::map<shard_id, error> refuse_open;
    std::map<shard_id, error> refuse_after_first;  ///< From the second read on.
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
    test::remembered_log log;
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
