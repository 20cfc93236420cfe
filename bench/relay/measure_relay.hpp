/// The measurements of the relay from PostgreSQL to Kafka, on the servers that `./dev services` starts.
#pragma once

#include "measure.hpp"

#include <vector>

namespace millrace::bench {

/// Drain against the lower of the two probes; one hot key; a held xmin horizon; processor and memory.
[[nodiscard]] std::vector<figure> measure_relay_drain(const setup& with);

/// From the return of a commit to a consumer of the topic, at fixed rates; start to first record.
[[nodiscard]] std::vector<figure> measure_relay_latency(const setup& with);

/// What a relay costs the writers.
[[nodiscard]] std::vector<figure> measure_relay_writers(const setup& with);

}  // namespace millrace::bench
