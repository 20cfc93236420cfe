#include "group/group_start.hpp"

#include <chrono>

#include <fmt/format.h>

namespace millrace {

namespace {

std::string_view name_of(start_policy policy) {
    switch (policy) {
        case start_policy::trim_horizon:
            return "trim_horizon";
        case start_policy::latest:
            return "latest";
        case start_policy::at_timestamp:
            return "a timestamp";
    }
    return "unknown";
}

}  // namespace

group_row first_group_row(const group_options& options, const stream_listing& stream, write_id id) {
    group_row row;
    row.version = version{1};
    row.write_id = id;
    row.stream_identity = stream.identity;
    row.start = options.start;
    if (options.start == start_policy::latest) {
        row.start_at = std::chrono::floor<std::chrono::seconds>(stream.now);
    } else if (options.start == start_policy::at_timestamp) {
        row.start_at = options.start_at;
    }
    return row;
}

result<void> check_format(const group_row& row) {
    if (row.format <= group_row::format_known) return {};
    return fail(
        errc::wrong_version,
        fmt::format(
            "the group's rows are of format {}, this program knows up to {}; use a newer program",
            row.format,
            group_row::format_known
        )
    );
}

std::optional<std::string> start_is_ignored(const group_options& options, const group_row& row) {
    const bool same = options.start == row.start &&
                      (options.start != start_policy::at_timestamp || options.start_at == row.start_at);
    if (same) return std::nullopt;
    return fmt::format(
        "the group began at {} and goes on from its checkpoints; the start position {} is ignored",
        name_of(row.start),
        name_of(options.start)
    );
}

}  // namespace millrace
