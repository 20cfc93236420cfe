/// The measurements, each on fresh files, interleaved with its probe, medians of several rounds.
#pragma once

#include "dataset.hpp"
#include "table.hpp"

#include <string>
#include <vector>

namespace millrace::bench {

struct setup {
    std::string millrace;  ///< The program under test.
    std::string self;      ///< This program: runs the probes as processes of their own.
    dataset data;
    int rounds{3};
};

/// Throughput and peak memory of a relay that drains an outbox.
[[nodiscard]] std::vector<figure> measure_drain(const setup& with);

/// The same for one worker of a group.
[[nodiscard]] std::vector<figure> measure_consume(const setup& with);

/// From the start of relay and consumer to the first event, and from a commit to the handler while all is
/// idle.
[[nodiscard]] std::vector<figure> measure_latency(const setup& with);

/// Processor time of a relay and a consumer that have nothing to do.
[[nodiscard]] std::vector<figure> measure_idle(const setup& with);

}  // namespace millrace::bench
