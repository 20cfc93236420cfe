/// What is known of a topic, and what that says of a row beforehand.
///
/// Limits come from the topic's configuration; where that may not be read, they are learned from refusals and
/// corrected by what is accepted. Pure.
#pragma once

#include "partitioner.hpp"
#include "port/outbox_source.hpp"

#include <millrace/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::kafka {

struct topic_facts {
    /// What brokers take unless told otherwise.
    static constexpr std::size_t default_batch_bytes = 1'048'588;

    std::int32_t partitions{0};

    /// The partitions that take nothing now: no leader, or too few replicas in sync. By the latest look
    /// alone, and by the two latest, as a change of leader passes in a moment.
    std::vector<std::int32_t> seen_unwell;
    std::vector<std::int32_t> unwell;

    /// Why no record may go there, by the latest look: it does not exist, is hidden or has no leader.
    std::optional<error> trouble;

    /// Why a record was refused that said nothing of itself; until one is taken, whatever a look says.
    std::optional<error> denied;

    bool described{false};  ///< The limits are the topic's own, not learned.
    bool compacted{false};
    std::size_t row_bytes_max{default_batch_bytes};    ///< Of a batch of one row.
    std::size_t batch_bytes_max{default_batch_bytes};  ///< Of a batch of several.

    bool operator==(const topic_facts&) const = default;

    /// Takes over what a newer look says; what was learned stays where that look could not read the limits.
    void renew(const topic_facts& seen);

    [[nodiscard]] bool is_unwell(std::int32_t partition) const noexcept {
        return !unwell.empty() && std::find(unwell.begin(), unwell.end(), partition) != unwell.end();
    }

    /// A batch of so many bytes was refused for its size.
    void refused(std::size_t bytes, bool alone) noexcept;

    /// A row of so many bytes was taken alone.
    void accepted(std::size_t bytes) noexcept;
};

/// Why the topic will probably not take the row; nothing when it will. `client_bytes_max`: what the main
/// producer takes. `extra_header_bytes` as for `record_bytes`.
[[nodiscard]] std::optional<error> suspicion(
    const topic_facts& topic,
    const outbox_row& row,
    std::size_t client_bytes_max,
    std::size_t extra_header_bytes = 0
);

/// Where the row goes: a row whose key decides nothing passes partitions that are unwell. `partitions` must
/// be known.
[[nodiscard]] std::int32_t place_of(
    const outbox_row& row, const topic_facts& topic, const partitioner& by, std::uint32_t seed
);

/// Too few replicas are in sync to take a row. Brokers ask for no more than there are (since Kafka 4).
[[nodiscard]] constexpr bool lacks_replicas(int in_sync, int all, std::size_t min_in_sync) noexcept {
    const auto have = static_cast<std::size_t>(std::max(0, in_sync));
    return have < std::min(min_in_sync, static_cast<std::size_t>(std::max(0, all)));
}

/// Of a row for a partition that is unwell.
[[nodiscard]] error unwell_error(std::string_view topic, std::int32_t partition);

}  // namespace millrace::kafka
