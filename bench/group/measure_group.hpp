/// A group on Kinesis, against a stream that costs next to nothing to serve (`fast_stream.hpp`).
#pragma once

#include "measure.hpp"

#include <vector>

namespace millrace::bench {

/// Eight shards to the handler, beside the probe; processor and memory. The limits of shards are lifted.
std::vector<figure> measure_group_drain(const setup& with);

/// Two thousand shards in one worker: memory.
std::vector<figure> measure_group_shards(const setup& with);

/// Processor of a read at the tip, and of a worker that holds many shards.
std::vector<figure> measure_group_tip(const setup& with);

/// From the start of the program to the first record, on a new state.
std::vector<figure> measure_group_start(const setup& with);

}  // namespace millrace::bench
