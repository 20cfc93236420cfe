#include "schema_cache_options.hpp"

#include <fmt/format.h>

namespace millrace::registry {

namespace {

constexpr milliseconds hour{3'600'000};

tl::unexpected<error> wrong(std::string_view field, std::int64_t value, std::string_view choose) {
    return fail(
        errc::invalid_config, fmt::format("the schema cache's {} is {}; choose {}", field, value, choose)
    );
}

result<void> at_least(std::string_view field, std::size_t value, std::size_t least) {
    if (value >= least) return {};
    return wrong(field, static_cast<std::int64_t>(value), fmt::format("at least {}", least));
}

}  // namespace

result<void> schema_cache_options::validate() const {
    if (latest_time < milliseconds{1'000} || latest_time > 24 * hour)
        return wrong("latest_time", latest_time.count(), "1000 ms to 24 h");
    if (backoff_min < milliseconds{1} || backoff_min > backoff_max)
        return wrong(
            "backoff_min", backoff_min.count(), fmt::format("1 ms to backoff_max, {} ms", backoff_max.count())
        );
    if (backoff_max > hour) return wrong("backoff_max", backoff_max.count(), "up to 1 h");
    if (retry_after_max < milliseconds{0} || retry_after_max > hour)
        return wrong("retry_after_max", retry_after_max.count(), "0 to 1 h");
    constexpr std::size_t requests_most = 256;
    if (requests_max < 1 || requests_max > requests_most)
        return wrong("requests_max", static_cast<std::int64_t>(requests_max), "1 to 256");
    constexpr std::size_t depth_most = 100;
    if (reference_depth_max > depth_most)
        return wrong("reference_depth_max", static_cast<std::int64_t>(reference_depth_max), "up to 100");
    constexpr std::size_t references_most = 10'000;
    if (references_max > references_most)
        return wrong("references_max", static_cast<std::int64_t>(references_max), "up to 10000");
    constexpr std::size_t bytes_least = 65'536;
    if (auto fine = at_least("entries_max", entries_max, 1); !fine) return fine;
    if (auto fine = at_least("bytes_max", bytes_max, bytes_least); !fine) return fine;
    return at_least("waiters_max", waiters_max, 1);
}

}  // namespace millrace::registry
