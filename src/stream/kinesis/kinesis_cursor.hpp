/// The cursors that a Kinesis source gives: a shard iterator, and what must be known beside it.
///
/// A position can lie inside an aggregate, so a shard is read on *at* the number of the last record, and what
/// lies at or before the position is left out. Pure functions.
#pragma once

#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/position.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

struct kinesis_cursor {
    bool at_end{false};             ///< Nothing follows; there is no iterator.
    std::size_t record_bytes{0};    ///< Of the records read before it, on average; 0: not known.
    std::optional<position> after;  ///< Records up to here are left out.
    std::string iterator;

    bool operator==(const kinesis_cursor&) const = default;
};

[[nodiscard]] read_cursor to_text(const kinesis_cursor& cursor);

/// `invalid_argument` for what was not made by `to_text`.
[[nodiscard]] result<kinesis_cursor> parse_kinesis_cursor(std::string_view text);

/// How many records to ask for so that a reply has about `bytes_max`. The API knows no limit in bytes, so the
/// size of the records before is the guide, and until it is known they are taken for large.
[[nodiscard]] std::size_t records_to_ask(std::size_t record_bytes, const read_limits& limits);

/// The average after a reply of so many records and bytes: what grew counts at once, what fell little by
/// little, so that large records in between are met with a small limit for a while.
[[nodiscard]] std::size_t next_average(std::size_t before, std::size_t records, std::size_t bytes);

}  // namespace millrace
