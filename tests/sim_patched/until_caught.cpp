// Runs seeds until an oracle says one of the words given: exit 0. Exit 1 when none does within the bound. The
// first word may be `--hardly-renewed`: processes pause often, and replies of the lease store are often lost.

#include "world.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace {

using namespace std::chrono_literals;
using millrace::sim::scenario;

void hardly_renew(scenario& plan) {
    plan.quiet = false;
    plan.workers = std::max<std::size_t>(plan.workers, 2);
    plan.drift_per_million = 0;
    plan.session.margin = 30ms;
    plan.handler.waits_max = 300ms;
    plan.store.latency_max = 60ms;
    plan.store.timeout = 500ms;
    plan.store.lost_reply = 30;
    plan.processes.crash_every = 0ns;
    plan.processes.pause_every = 400ms;
    plan.processes.pause_max = plan.session.lease + 200ms;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr std::uint64_t seeds_max = 1'000;
    std::vector<std::string> meant(argv + 1, argv + argc);
    const auto hardly = !meant.empty() && meant.front() == "--hardly-renewed";
    if (hardly) meant.erase(meant.begin());
    std::uint64_t others = 0;
    for (std::uint64_t seed = 1; seed <= seeds_max; ++seed) {
        auto plan = millrace::sim::draw_scenario(seed);
        if (hardly) hardly_renew(plan);
        for (const auto& failure : millrace::sim::world(plan, {}, false).run().failures) {
            for (const auto& words : meant) {
                if (failure.find(words) == std::string::npos) continue;
                fmt::print("caught by seed {}: {}\n", seed, failure);
                return 0;
            }
            if (++others <= 20) fmt::print("seed {}, not as meant: {}\n", seed, failure);
        }
    }
    fmt::print("no oracle caught it as meant within {} seeds\n", seeds_max);
    return 1;
}
