#include "shard/options.hpp"

#include "text/span_limit.hpp"

#include <utility>

#include <fmt/core.h>

namespace millrace {

namespace {

[[nodiscard]] double seconds(nanoseconds span) {
    return std::chrono::duration<double>(span).count();
}

[[nodiscard]] result<void> check_pair(
    const char* low_name, nanoseconds low, const char* high_name, nanoseconds high
) {
    if (auto ok = check_span(low_name, low); !ok) return ok;
    if (auto ok = check_span(high_name, high); !ok) return ok;
    if (high < low)
        return fail(
            errc::invalid_config,
            fmt::format(
                "{} is {} s, below {}, which is {} s; make it at least as long",
                high_name,
                seconds(high),
                low_name,
                seconds(low)
            )
        );
    return {};
}

}  // namespace

result<void> shard_options::validate() const {
    const std::pair<const char*, std::size_t> counts[] = {
        {"dead_letter_after", dead_letter_after},
        {"batch_records", batch_records},
        {"read_records", read_records},
        {"read_bytes", read_bytes},
        {"reads_in_flight", reads_in_flight},
        {"memory_bytes", memory_bytes},
        {"shard_unacknowledged", shard_unacknowledged},
    };
    for (const auto& [name, value] : counts)
        if (value == 0)
            return fail(errc::invalid_config, fmt::format("{} is 0; it must be at least 1", name));
    if (read_bytes > memory_bytes)
        return fail(
            errc::invalid_config,
            fmt::format(
                "read_bytes is {}, above memory_bytes, which is {}; a read must fit the memory",
                read_bytes,
                memory_bytes
            )
        );
    if (auto checked = check_pair("retry_min", retry_min, "retry_max", retry_max); !checked) return checked;
    if (auto checked = check_pair("backoff_min", backoff_min, "backoff_max", backoff_max); !checked)
        return checked;
    constexpr std::uint64_t reads_max = 1'000;
    if (reads_per_second && *reads_per_second > reads_max)
        return fail(
            errc::invalid_config,
            fmt::format(
                "reads_per_second is {}; it must be at most {}, or 0 for no limit",
                *reads_per_second,
                reads_max
            )
        );
    if (auto ok = check_span("read_interval", read_interval, zero_span::allowed); !ok) return ok;
    return check_span("tip_interval", tip_interval);
}

}  // namespace millrace
