/// Which partition a row goes to, computed here so that it is known before the row is handed over. Pure.
#pragma once

#include "port/outbox_source.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <string_view>

namespace millrace::kafka {

class partitioner {
public:
    /// By the names of librdkafka's property: `murmur2_random` (Java's, the default), `murmur2`,
    /// `consistent`, `consistent_random`, `fnv1a`, `fnv1a_random`.
    [[nodiscard]] static result<partitioner> named(std::string_view name);

    partitioner() = default;

    /// The row's own partition when it names one, which may not exist. `seed` decides where the key does not:
    /// rows with the same one go together, so that batches form.
    [[nodiscard]] std::int32_t partition_of(
        const outbox_row& row, std::int32_t partitions, std::uint32_t seed
    ) const noexcept;

    /// Neither the row nor its key says where it goes: the seed does.
    [[nodiscard]] bool is_free(const outbox_row& row) const noexcept {
        if (row.partition) return false;
        return row.key ? row.key->empty() && empty_is_random_ : null_is_random_;
    }

private:
    enum class hash : std::uint8_t { murmur2, crc32, fnv1a };

    partitioner(hash by, bool null_is_random, bool empty_is_random)
        : by_(by), null_is_random_(null_is_random), empty_is_random_(empty_is_random) {}

    hash by_{hash::murmur2};
    bool null_is_random_{true};
    bool empty_is_random_{false};
};

}  // namespace millrace::kafka
