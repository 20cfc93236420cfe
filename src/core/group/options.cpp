#include "group/options.hpp"

#include "text/span_limit.hpp"

#include <chrono>

#include <fmt/core.h>

namespace millrace {

namespace {

constexpr nanoseconds tick_max = std::chrono::milliseconds{500};

[[nodiscard]] double seconds(nanoseconds span) {
    return std::chrono::duration<double>(span).count();
}

}  // namespace

result<void> group_options::validate() const {
    const struct {
        const char* name;
        nanoseconds value;
    } spans[] = {
        {"group option tick", tick},
        {"group option shard_list_every", shard_list_every},
        {"group option discover_every", discover_every},
        {"group option checkpoint_every", checkpoint_every},
        {"group option tidy_after", tidy_after},
    };
    for (const auto& span : spans) {
        if (auto ok = check_span(span.name, span.value); !ok) return ok;
    }
    if (auto ok = check_span("group option drain_limit", drain_limit, zero_span::allowed); !ok) return ok;
    if (tick > tick_max) {
        return fail(
            errc::invalid_config,
            fmt::format(
                "group option tick is {} s; it must be at most {} s", seconds(tick), seconds(tick_max)
            )
        );
    }
    if (checkpoint_records == 0 || checkpoints_per_second == 0) {
        return fail(
            errc::invalid_config,
            "group options checkpoint_records and checkpoints_per_second must be at least 1"
        );
    }
    if (start == start_policy::at_timestamp && !start_at) {
        return fail(
            errc::invalid_config, "group option start is at_timestamp without a start_at; give the time"
        );
    }
    return {};
}

}  // namespace millrace
