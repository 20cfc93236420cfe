#include "group/group_start.hpp"

#include <chrono>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace millrace {

namespace {

std::string text_of(wall_time moment) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(moment).time_since_epoch().count();
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string text_of(start_policy policy, const std::optional<wall_time>& at) {
    switch (policy) {
        case start_policy::trim_horizon:
            return "trim_horizon";
        case start_policy::latest:
            return at ? fmt::format("latest ({})", text_of(*at)) : "latest";
        case start_policy::at_timestamp:
            return at ? text_of(*at) : "a timestamp";
    }
    return "unknown";
}

}  // namespace

group_row first_group_row(const group_options& options, const stream_listing& stream) {
    group_row row;
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
        text_of(row.start, row.start_at),
        text_of(options.start, options.start == start_policy::at_timestamp ? options.start_at : std::nullopt)
    );
}

}  // namespace millrace
