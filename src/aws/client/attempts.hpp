/// Decides what follows a failed attempt of a request: another one, at once or after a pause, or the end.
///
/// Pure: time and randomness are arguments. One object a request; the budget is shared by all requests of a
/// client. No thread safety.
#pragma once

#include "client/classify.hpp"
#include "retry/backoff.hpp"

#include <millrace/time.hpp>

#include <algorithm>
#include <cstdint>
#include <variant>

namespace millrace::aws {

struct attempt_options {
    std::uint32_t attempts_max{8};
    nanoseconds throttled_pause{std::chrono::milliseconds{500}};  ///< Ceiling of the first; doubles.
    nanoseconds transient_pause{std::chrono::milliseconds{100}};  ///< The same after other failures.
    nanoseconds pause_max{std::chrono::seconds{5}};
    bool repeatable{true};           ///< May take effect twice.
    bool wait_when_throttled{true};  ///< False: throttling ends the request.
};

/// Keeps retries a small part of the requests while a service is down: each takes one from the store, each
/// request that succeeds puts a tenth back.
class retry_budget {
public:
    explicit retry_budget(std::uint32_t store)
        : tenths_max_(std::uint64_t{store} * 10), tenths_(tenths_max_) {}

    [[nodiscard]] bool take() {
        if (tenths_ < 10) return false;
        tenths_ -= 10;
        return true;
    }
    void succeeded() { tenths_ = std::min(tenths_ + 1, tenths_max_); }

private:
    std::uint64_t tenths_max_;
    std::uint64_t tenths_;
};

/// How an attempt failed.
struct attempt_failure {
    failure_class kind{failure_class::final};
    bool effect_possible{false};
    bool clock_was_wrong{false};  ///< The reply's date moves the offset with which it was signed.

    bool operator==(const attempt_failure&) const = default;
};

class attempts {
public:
    struct tell {              ///< It is over: the caller hears of this failure.
        bool in_doubt{false};  ///< The request may have taken effect.
        bool gave_up{false};   ///< Another attempt would have been allowed, but for time, number or budget.
        bool operator==(const tell&) const = default;
    };
    struct again {  ///< Sign anew and send.
        nanoseconds pause{0};
        bool operator==(const again&) const = default;
    };
    struct other_keys {  ///< Get other keys, then sign and send; tell the failure if there are none.
        bool operator==(const other_keys&) const = default;
    };
    using action = std::variant<tell, again, other_keys>;

    /// After `deadline` no attempt begins.
    attempts(attempt_options options, mono_time deadline);

    /// `now` never falls.
    [[nodiscard]] action failed(
        mono_time now, const attempt_failure& what, retry_budget& budget, std::uint64_t random
    );

    [[nodiscard]] std::uint32_t made() const { return made_; }

private:
    [[nodiscard]] action after_pause(mono_time now, nanoseconds pause, retry_budget& budget);

    attempt_options options_;
    mono_time deadline_;
    backoff throttled_;
    backoff transient_;
    std::uint32_t made_{0};
    bool clock_learned_{false};
    bool keys_renewed_{false};
};

}  // namespace millrace::aws
