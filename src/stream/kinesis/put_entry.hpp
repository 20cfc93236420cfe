/// What of an event goes into a Kinesis record, and what Kinesis cannot hold. Pure.
#pragma once

#include "kinesis/write_messages.hpp"
#include "kinesis_url.hpp"
#include "port/outbox_source.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// Limits of PutRecords.
inline constexpr std::size_t kinesis_call_records_max = 500;
inline constexpr std::size_t kinesis_record_overhead =
    64;  ///< Counted with each record of a call, generously.

/// The header whose value, a decimal, takes the place of the key's MD5. It is no loss.
inline constexpr std::string_view explicit_hash_header = "kinesis-explicit-hash-key";

/// Why the row can be no record: `refused_record`, or `refused_topic` for a topic that cannot name a stream
/// (`named_by_topic`). Nothing when it can.
[[nodiscard]] std::optional<error> why_refused(
    const outbox_row& row, const kinesis_losses& losses, bool named_by_topic
);

/// The record of a row that is not refused; its views point into the row. `random` makes the key of a row
/// without one, and `key_room` holds it.
[[nodiscard]] aws::kinesis::put_entry entry_of(
    const outbox_row& row, std::uint64_t random, std::string& key_room
);

[[nodiscard]] inline std::size_t bytes_of(const aws::kinesis::put_entry& entry) noexcept {
    return entry.data.bytes.size() + entry.key.size() + kinesis_record_overhead;
}

}  // namespace millrace
