// Faults stay where they are: one sick shard, bad rows and a missing topic do not stop the rest.

#include "world.hpp"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

scenario only_local_faults(std::uint64_t seed) {
    auto s = draw_scenario(seed);
    s.faulty = true;
    s.sick_shard = true;
    s.workers = std::max<std::size_t>(s.workers, 1);
    s.processes = {};
    for (auto* service : {&s.store, &s.stream, &s.outbox, &s.sink}) {
        *service = service->calm();
        service->latency_max = 3ms;
    }
    s.topic.shards = 4;
    s.topic.denials = s.topic.old_listings = 0;
    s.handler = {};
    s.shard.on_failure = failure_policy::retry;
    s.relay.on_poison = poison_policy::park_key;
    s.writers.guilty = 6;
    s.writers.malformed = 3;
    s.writers.lost_topic = 10;
    s.faults_until = s.writers.until + s.writers.open_max + 7s;
    return s;
}

TEST(Isolation, OneSickShardBadRowsAndAMissingTopicStopNothingElse) {
    for (std::uint64_t seed = 1; seed <= 150; ++seed) {
        const auto report = world(only_local_faults(seed), {}, false).run();
        for (const auto& failure : report.failures)
            ADD_FAILURE() << "seed " << seed << ": " << failure;
    }
}

}  // namespace
}  // namespace millrace::sim
