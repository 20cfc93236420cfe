/// Reads the lines of `group import`: NDJSON `{"shard": "…", "sequence": "…", "finished": false}`. Pure.
#pragma once

#include "group/import.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace millrace::app {

constexpr std::size_t import_bytes_max = std::size_t{64} << 20;

/// Blank lines are skipped. Each other has `shard`, and `sequence` (a decimal in quotes, since it is longer
/// than JSON numbers are exact), `finished`, or both; `sub_sequence` goes with a sequence. An error begins
/// with the line: `line 3: …`.
[[nodiscard]] result<std::vector<imported_shard>> parse_import(std::string_view text);

}  // namespace millrace::app
