/// What schemas cost the relay from PostgreSQL to Kafka, on the servers that `./dev services` starts.
#pragma once

#include "measure.hpp"

#include <vector>

namespace millrace::bench {

/// Drain of JSON records of 12 fields: framed, encoded as Avro and checked as JSON, each against the drain of
/// the same rows as they are.
[[nodiscard]] std::vector<figure> measure_schemas_drain(const setup& with);

}  // namespace millrace::bench
