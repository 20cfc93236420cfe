/// Runs worlds with a deliberate fault at a seam until the oracle that is meant sees it.
#pragma once

#include "pass_through.hpp"
#include "world.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::sim {

using words = std::vector<std::string>;

template <class Wrapper, class Port>
seam<Port> put() {
    return [](std::unique_ptr<Port> inner) -> std::unique_ptr<Port> {
        return std::make_unique<Wrapper>(std::move(inner));
    };
}

struct Breakage : testing::Test {
    static constexpr std::uint64_t seeds_max = 1'500;

    seams between;
    std::function<void(scenario&)> aim = [](scenario&) {};

    void expect_caught_as(const words& any_of) const {
        std::string seen;
        for (std::uint64_t seed = 1; seed <= seeds_max; ++seed) {
            auto plan = draw_scenario(seed);
            aim(plan);
            const auto report = world(plan, between, false).run();
            for (const auto& failure : report.failures) {
                const auto meant = std::any_of(any_of.begin(), any_of.end(), [&](const std::string& word) {
                    return failure.find(word) != std::string::npos;
                });
                if (meant) return;
                if (seen.size() < 2'000) seen += "\n  " + std::to_string(seed) + ": " + failure;
            }
        }
        FAIL() << "no oracle caught it as meant within " << seeds_max << " seeds; seen:" << seen;
    }
};

inline void one_sick_shard(scenario& s) {
    s.sick_shard = true;
    s.topic.shards = 4;
    s.handler = {};
    s.processes = {};
    s.faults_until = s.writers.until + s.writers.open_max + 7s;
}

}  // namespace millrace::sim
