/// Positions of a group as gosoline's kinsumer and harlow's kinesis-consumer keep them, made into what
/// `group import` takes.
///
/// Pure functions. Both keep the rows of one consumer and stream under one name, a row a shard; who reads the
/// tables gives the texts in them.
#pragma once

#include "group/import.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

enum class kept_by : std::uint8_t { gosoline, harlow };

/// As a user writes it.
[[nodiscard]] std::optional<kept_by> kept_by_from(std::string_view name);

/// The name under which the rows stand: of gosoline, `app` is `{app.namespace}-{app.name}`.
[[nodiscard]] std::string kept_under(kept_by whom, std::string_view app, std::string_view stream);

/// One row: what is absent or empty there is empty here.
struct kept_row {
    std::string shard;
    std::string sequence;
    std::string finished_at;  ///< gosoline's alone.
};

/// Rows of shards that were taken and never moved are left out. `not_found` when nothing is left, `corrupt`
/// for a row without a shard or with a position that is no number; `where` names the table in both.
[[nodiscard]] result<std::vector<imported_shard>> read_kept(
    std::span<const kept_row> rows, std::string_view under, std::string_view where
);

}  // namespace millrace
