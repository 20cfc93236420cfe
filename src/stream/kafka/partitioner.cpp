#include "partitioner.hpp"

#include "handles.hpp"

#include <array>

#include <fmt/core.h>

namespace millrace::kafka {

result<partitioner> partitioner::named(std::string_view name) {
    if (name == "murmur2_random") return partitioner(hash::murmur2, true, false);
    if (name == "murmur2") return partitioner(hash::murmur2, false, false);
    if (name == "consistent_random") return partitioner(hash::crc32, true, true);
    if (name == "consistent") return partitioner(hash::crc32, false, false);
    if (name == "fnv1a_random") return partitioner(hash::fnv1a, true, false);
    if (name == "fnv1a") return partitioner(hash::fnv1a, false, false);
    return fail(
        errc::invalid_config,
        fmt::format(
            "the Kafka property partitioner={}: not known; use murmur2_random (as Java does), murmur2, "
            "consistent, consistent_random, fnv1a or fnv1a_random",
            name
        )
    );
}

std::int32_t partitioner::partition_of(const outbox_row& row, std::int32_t partitions, std::uint32_t seed)
    const noexcept {
    if (row.partition) return *row.partition;
    if (is_free(row)) return static_cast<std::int32_t>(seed % static_cast<std::uint32_t>(partitions));
    const auto key = row.key.value_or("");
    // librdkafka's functions look at nothing but the key and the count.
    const auto* const bytes = key.data() == nullptr ? "" : key.data();
    switch (by_) {
        case hash::crc32:
            return rd_kafka_msg_partitioner_consistent(
                nullptr, bytes, key.size(), partitions, nullptr, nullptr
            );
        case hash::fnv1a:
            return rd_kafka_msg_partitioner_fnv1a(nullptr, bytes, key.size(), partitions, nullptr, nullptr);
        case hash::murmur2:
            break;
    }
    return rd_kafka_msg_partitioner_murmur2(nullptr, bytes, key.size(), partitions, nullptr, nullptr);
}

}  // namespace millrace::kafka
