/// How many rows may be handed to the sink now, when their rate is limited: a token bucket.
///
/// After a rest a tenth of a second's rows may go out at once. When the bucket is nearly empty it waits until
/// a hundredth of a second's have gathered, so that a limited relay does not send row by row. Pure; no thread
/// safety.
#pragma once

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>

namespace millrace {

class rate_limit {
public:
    /// Zero: no limit.
    explicit rate_limit(std::uint64_t rows_per_second);

    [[nodiscard]] std::size_t room(mono_time now) const;
    void spend(mono_time now, std::size_t rows);

    /// When there is room; now or earlier when there is some.
    [[nodiscard]] mono_time due() const;

private:
    [[nodiscard]] mono_time filled_from(mono_time now) const;

    nanoseconds cost_;   // of a row; zero without a limit
    nanoseconds burst_;  // what the bucket holds
    nanoseconds least_;  // what is worth a request
    mono_time empty_at_{mono_time::min() + std::chrono::hours{1}};
};

}  // namespace millrace
