/// When keys are fetched, and what requests for them get meanwhile, as a state machine.
///
/// Keys are renewed in the background ahead of their end; shortly before it requests wait for the new ones.
/// However many wait, one fetch is under way. While the source is down, old keys are given as long as they
/// hold, and those of containers and instances (`outlive`) also behind their end, since AWS may go on
/// accepting them. No I/O and no clock: the caller carries out the actions, and calls again at `wake()`. No
/// thread safety.
#pragma once

#include "keys.hpp"
#include "retry/backoff.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

namespace millrace::aws {

struct key_refresh_options {
    nanoseconds ahead{std::chrono::minutes{15}};      ///< Before the end, keys are renewed in the background.
    nanoseconds jitter{std::chrono::minutes{2}};      ///< Up to so much earlier, so that workers spread.
    nanoseconds block{std::chrono::minutes{1}};       ///< Before the end, requests wait for new keys,
    nanoseconds wait_limit{std::chrono::seconds{5}};  ///< at most so long while the old ones hold.

    nanoseconds retry_min{std::chrono::seconds{1}};  ///< After a failed fetch; doubles up to `retry_max`.
    nanoseconds retry_max{std::chrono::minutes{1}};
    nanoseconds late_retry_min{std::chrono::minutes{5}};  ///< Behind the end of keys that outlive it.
    nanoseconds late_retry_max{std::chrono::minutes{10}};
    nanoseconds refused_pause{std::chrono::seconds{10}};  ///< Between two fetches that refusals force.

    std::size_t waiting_max{10'000};  ///< Requests that wait; above, they fail with `throttled`.
};

class key_refresh {
public:
    using ask_id = std::uint64_t;

    struct asked {
        ask_id by{0};
    };
    struct refused {
        aws_keys keys;
    };
    struct timer {};
    struct fetched {
        aws_keys keys;
        std::optional<nanoseconds> lasts;  ///< From now to their end; negative behind it, empty without one.
        bool outlive{false};               ///< They may be used behind their end.
    };
    struct failed {
        error why;
    };
    using event = std::variant<asked, refused, timer, fetched, failed>;

    struct fetch {
        bool operator==(const fetch&) const = default;
    };
    struct give {
        std::vector<ask_id> to;
        result<aws_keys> outcome;
        bool operator==(const give&) const = default;
    };
    using action = std::variant<fetch, give>;

    key_refresh(key_refresh_options options, std::function<std::uint64_t()> random);

    /// `now` never decreases between calls. After a `fetch`, one of `fetched` and `failed` follows.
    [[nodiscard]] std::vector<action> step(mono_time now, const event& what);

    /// When `step` wants a `timer` at the latest; empty while nothing is due.
    [[nodiscard]] std::optional<mono_time> wake() const;

    /// Whether keys are given behind their end.
    [[nodiscard]] bool stale(mono_time now) const { return keys_ && now >= end_; }

private:
    struct waiting {
        ask_id by;
        mono_time since;
    };

    void on(mono_time now, const asked& what);
    void on(mono_time now, const refused& what);
    void on(mono_time now, const timer&);
    void on(mono_time now, const fetched& what);
    void on(mono_time now, const failed& what);

    [[nodiscard]] bool usable(mono_time now) const;
    void schedule(mono_time now, std::optional<nanoseconds> lasts);
    void begin_fetch();
    void fetch_if_due(mono_time now);
    void give_all(const result<aws_keys>& outcome);
    void give_patient(mono_time now);
    [[nodiscard]] nanoseconds spread(nanoseconds least, nanoseconds most);

    key_refresh_options options_;
    std::function<std::uint64_t()> random_;
    std::vector<action> actions_;

    std::optional<aws_keys> keys_;
    bool outlive_{false};
    mono_time end_{mono_time::max()};
    mono_time renew_at_{mono_time::max()};
    mono_time block_at_{mono_time::max()};

    bool fetching_{false};
    mono_time last_fetch_{mono_time::min()};  // when it ended
    mono_time next_fetch_{mono_time::min()};  // none begins before
    std::optional<error> trouble_;            // of the latest fetch; empty when it succeeded
    backoff pauses_;
    std::vector<waiting> waiting_;  // in the order of their coming
};

}  // namespace millrace::aws
