/// The group's own row: what it says at the group's first start, and what a later start finds in it.
#pragma once

#include "group/options.hpp"
#include "port/lease_store.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>

#include <optional>
#include <string>

namespace millrace {

/// The row for a first start. `latest` is pinned to the stream's clock, rounded down to the second: up to a
/// second of older records may come, none is missed. Version and write id are left to whoever writes it.
[[nodiscard]] group_row first_group_row(const group_options& options, const stream_listing& stream);

/// `wrong_version` when the row was written by a newer program.
[[nodiscard]] result<void> check_format(const group_row& row);

/// What to tell when this start asks for another start position than the group has; empty if it does not.
[[nodiscard]] std::optional<std::string> start_is_ignored(const group_options& options, const group_row& row);

}  // namespace millrace
