/// How many bytes a row takes in a batch of Kafka's format 2, uncompressed. Pure.
#pragma once

#include "port/outbox_source.hpp"

#include <cstddef>

namespace millrace::kafka {

/// Of a batch without records.
inline constexpr std::size_t batch_header_bytes = 61;

/// Of the row as the first record of its batch; further records take at most `record_slack` more.
/// `extra_header_bytes`: what `header_bytes` says of headers that the sink adds.
[[nodiscard]] std::size_t record_bytes(const outbox_row& row, std::size_t extra_header_bytes = 0) noexcept;

[[nodiscard]] std::size_t header_bytes(std::size_t name, std::size_t value) noexcept;

/// Offsets and timestamps of later records are deltas of up to so many bytes more.
inline constexpr std::size_t record_slack = 12;

}  // namespace millrace::kafka
