/// Rows of leases from the columns of a reply.
///
/// Pure functions. Whatever Millrace does not write is `corrupt`, with the name of the column.
#pragma once

#include "port/lease_fields.hpp"
#include "port/lease_store.hpp"
#include "rows.hpp"

#include <millrace/error.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace millrace::postgres {

// In the order in which replies and parameters have them; what names the row stands first.
inline constexpr std::array<std::string_view, 7> group_columns{
    "version", "format", "write_id", "stream_identity", "start", "start_at", "epoch_floor"};
inline constexpr std::array<std::string_view, 12> worker_columns{
    "incarnation",
    "counter",
    "worker",
    "write_id",
    "lease_ns",
    "changes",
    "host",
    "boot_id",
    "pid_namespace",
    "pid",
    "start_time",
    "updated_at"};
inline constexpr std::array<std::string_view, 11> shard_columns{
    "shard",
    "version",
    "parents",
    "owner",
    "epoch",
    "write_id",
    "sequence",
    "sub_sequence",
    "arrival",
    "finished_at",
    "updated_at"};

/// The values of one row, one a column; empty: NULL.
using row_values = std::span<const std::optional<std::string_view>>;

/// `where` is the server, for messages.
[[nodiscard]] result<group_row> decode_group(row_values values, std::string_view where);
[[nodiscard]] result<worker_row> decode_worker(row_values values, std::string_view where);

/// For a listing: a row that cannot be read is told of by its name.
[[nodiscard]] result<worker_row> decode_listed_worker(row_values values, std::string_view where);
[[nodiscard]] result<shard_row> decode_shard(row_values values, std::string_view where);

/// For a listing: a row that cannot be read is told of by its name.
[[nodiscard]] result<shard_row> decode_listed_shard(row_values values, std::string_view where);

}  // namespace millrace::postgres
