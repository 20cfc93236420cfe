/// Ceiling probes of the relay from PostgreSQL to Kafka: libpq alone, and librdkafka alone.
#pragma once

#include "relay/servers.hpp"

#include <cstdint>
#include <string>

namespace millrace::bench {

/// Reads the table by id in batches and deletes each batch as a range. Returns the rows.
std::uint64_t probe_postgres(const servers& at, const std::string& table);

/// Publishes as many records of `value_bytes` on `keys` keys, idempotent, and waits for all acknowledgements.
void probe_kafka(
    const servers& at,
    const std::string& topic,
    std::uint64_t rows,
    std::uint64_t keys,
    std::size_t value_bytes
);

}  // namespace millrace::bench
