/// Limits and counters of the cache of schemas. Plain data.
#pragma once

#include "registry_failure.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::registry {

struct schema_cache_options {
    /// A new latest version is used by then at the latest; it is asked for in the background after three
    /// quarters. 1 s to 24 h.
    milliseconds latest_time{60'000};

    /// The pause after a failure: at random up to a ceiling, which doubles from `backoff_min` to
    /// `backoff_max`. From 1 ms; at most 1 h. Trouble of the registry holds back every request so, a refusal
    /// that of its subject.
    milliseconds backoff_min{200};
    milliseconds backoff_max{10'000};

    /// A registry that asks for a longer pause (Retry-After) gets so much. Up to 1 h.
    milliseconds retry_after_max{300'000};

    /// Requests under way; one while the registry is in trouble. 1 to 256.
    std::size_t requests_max{8};

    /// Subjects times choices, referenced schemas and refusals included; those used longest ago are dropped.
    /// From 1.
    std::size_t entries_max{20'000};

    /// Of all entries: their texts (the same schema under many subjects once), names and errors, and 1 KiB
    /// each beside. What is waited for is counted, but not dropped. From 64 KiB.
    std::size_t bytes_max{std::size_t{64} << 20};

    /// Calls of `want` that are not told yet; a further one is refused. From 1.
    std::size_t waiters_max{100'000};

    /// What one schema may need, directly or not: a chain so long (up to 100), so many schemas (up to
    /// 10,000), so many bytes of text.
    std::size_t reference_depth_max{16};
    std::size_t references_max{200};
    std::size_t reference_bytes_max{std::size_t{4} << 20};

    /// `invalid_config` names the field and both values.
    [[nodiscard]] result<void> validate() const;
};

/// Since the start, but for the first three.
struct schema_counters {
    std::size_t entries{0};     ///< Now.
    std::size_t bytes{0};       ///< Now, as `bytes_max` counts them.
    std::size_t waiters{0};     ///< Now.
    std::uint64_t requests{0};  ///< Given to the registry.
    std::uint64_t answers{0};   ///< Schemas that came.
    std::uint64_t refusals{0};  ///< Answers that there is none.
    std::uint64_t troubles{0};  ///< Requests that failed otherwise.
    std::array<std::uint64_t, failure_kinds>
        failed{};                 ///< Refusals and troubles, each by its `failure_kind`.
    std::uint64_t stale_uses{0};  ///< Times that an outdated latest version was given.
    std::uint64_t dropped{
        0};  ///< Entries that had to go for others; when it grows all the time, raise the limits.
};

}  // namespace millrace::registry
