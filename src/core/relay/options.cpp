#include "relay/options.hpp"

#include "text/span_limit.hpp"

#include <fmt/core.h>

namespace millrace {

namespace {

[[nodiscard]] tl::unexpected<error> wrong(std::string detail) {
    return fail(errc::invalid_config, std::move(detail));
}

// No relay is so fast; above, the cost of a row would round away.
constexpr std::uint64_t rows_per_second_max = 10'000'000;

[[nodiscard]] double seconds(nanoseconds span) {
    return std::chrono::duration<double>(span).count();
}

}  // namespace

result<void> relay_options::validate() const {
    const struct {
        const char* name;
        std::size_t value;
    } sizes[] = {
        {"fetch_rows", fetch_rows},
        {"fetch_bytes", fetch_bytes},
        {"window_rows", window_rows},
        {"window_bytes", window_bytes},
        {"client_window_rows", client_window_rows},
        {"client_window_bytes", client_window_bytes},
        {"delete_rows", delete_rows},
        {"gaps_max", gaps_max},
        {"probes_in_flight", probes_in_flight},
    };
    for (const auto& size : sizes) {
        if (size.value == 0)
            return wrong(fmt::format("relay option {} is 0; it must be at least 1", size.name));
    }
    const struct {
        const char* name;
        nanoseconds value;
    } spans[] = {
        {"relay option retry_min", retry_min},
        {"relay option retry_max", retry_max},
        {"relay option poll_min", poll_min},
        {"relay option poll_max", poll_max},
        {"relay option gap_probe_every", gap_probe_every},
        {"relay option sweep_every", sweep_every},
    };
    for (const auto& span : spans) {
        if (auto ok = check_span(span.name, span.value); !ok) return ok;
    }
    if (auto ok = check_span("relay option delete_delay", delete_delay, zero_span::allowed); !ok) return ok;
    if (auto ok = check_span("relay option drain_limit", drain_limit, zero_span::allowed); !ok) return ok;
    if (rows_per_second > rows_per_second_max)
        return wrong(fmt::format(
            "relay option rows_per_second is {}; it must be at most {}, or 0 for no limit",
            rows_per_second,
            rows_per_second_max
        ));
    if (retry_max < retry_min)
        return wrong(fmt::format(
            "relay option retry_max ({} s) is below retry_min ({} s)", seconds(retry_max), seconds(retry_min)
        ));
    if (poll_max < poll_min)
        return wrong(fmt::format(
            "relay option poll_max ({} s) is below poll_min ({} s)", seconds(poll_max), seconds(poll_min)
        ));
    if (window_rows < fetch_rows)
        return wrong(
            fmt::format("relay option window_rows ({}) is below fetch_rows ({})", window_rows, fetch_rows)
        );
    if (window_bytes < fetch_bytes)
        return wrong(
            fmt::format("relay option window_bytes ({}) is below fetch_bytes ({})", window_bytes, fetch_bytes)
        );
    if (!(sweep_share > 0.0 && sweep_share <= 1.0))
        return wrong(
            fmt::format("relay option sweep_share is {}; it must be above 0 and at most 1", sweep_share)
        );
    return {};
}

}  // namespace millrace
