/// Decides what the handler of one shard is given next, and what becomes of records that it fails on.
///
/// Records are handed over in stream order, at most one call at a time. What a call failed on is settled
/// before anything newer is handed over, so a failure never lets a later record overtake. A record is given
/// up only on a verdict: a failure that named it, or of a call that held it alone; so from its last attempt
/// on, a suspect is handed over alone. It counts as acknowledged when the dead letter is durable.
///
/// The caller carries out what `next` says and reports back; it stops asking when the lease is lost.
/// Acknowledgements are accepted at any time, also for records that wait for another attempt.
/// Thread contract: none; one owner.
#pragma once

#include "retry/backoff.hpp"
#include "shard/ack_window.hpp"
#include "shard/options.hpp"

#include <millrace/error.hpp>
#include <millrace/handler.hpp>
#include <millrace/record.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace millrace {

class shard_delivery {
public:
    using index = ack_window::index;

    /// Call the handler with these records, then `returned`.
    struct hand {
        std::shared_ptr<const record_batch> batch;
        index first{0};  ///< The window index of its first record; the others follow it ...
        std::shared_ptr<const std::vector<index>> places;  ///< ... unless this is set: the index of each.
        std::uint32_t attempt{1};
    };
    /// Store this record durably among the dead letters, then `buried`.
    struct bury {
        std::shared_ptr<const record_batch> batch;
        std::size_t at{0};
        error why;
    };
    /// Ask again then, or after another event.
    struct wait {
        mono_time until;
    };
    /// Nothing to do until another event.
    struct rest {};
    using action = std::variant<rest, hand, bury, wait>;

    struct progress {
        checkpoint reached;
        std::uint64_t records;
    };

    struct counters {
        std::uint64_t handed{0};
        std::uint64_t acknowledged{0};
        std::uint64_t failures{0};
        std::uint64_t dead_lettered{0};
    };

    /// The options must outlive the machine.
    shard_delivery(const shard_options& options, shard_id shard);

    /// Records that were read, in order. Ignored once stopped.
    void push(std::shared_ptr<const record_batch> batch);

    /// The shard is closed and everything was pushed.
    void end_read();

    /// `hand` and `bury` are given once and must be answered.
    [[nodiscard]] action next(mono_time now);

    /// The handler acknowledged these records (inclusive).
    void acknowledge(index first, index last);

    /// The handler failed on this one record, during or after its call.
    void fail(mono_time now, std::uint64_t random, index which, const error& why);

    /// The call under way has ended; what was acknowledged during it was reported before.
    void returned(mono_time now, std::uint64_t random, const result<handled>& how);

    /// The handler was not called after all: the same records are handed over again, as if for the first
    /// time.
    void not_called();

    void buried(mono_time now, std::uint64_t random, const result<void>& how);

    /// Hands nothing more over, as the policy `stop` does after a failure.
    void stop(const error& why);

    /// The shard is to be given back: nothing more is handed over.
    void drain() { draining_ = true; }

    /// Whether this is how a handler says that it ended early because the shard is to be given back.
    [[nodiscard]] bool ended_early(const error& why) const {
        return draining_ && (why.code == errc::cancelled || why.code == errc::not_owner);
    }

    /// The call has returned and its acknowledgements are settled. What waits for another attempt does not
    /// count: it comes again elsewhere.
    [[nodiscard]] bool settled() const;

    /// The end was read and everything is acknowledged.
    [[nodiscard]] bool finished() const { return end_read_ && window_.size() == 0 && !calling_ && !burying_; }

    /// Something is to be handed over now or after a pause.
    [[nodiscard]] bool pending() const noexcept { return unhanded() > 0 || waiting_ > 0; }

    /// Set once it was stopped.
    [[nodiscard]] const std::optional<error>& stopped() const noexcept { return stopped_; }

    /// What moved since the last call.
    [[nodiscard]] std::optional<progress> take_progress();

    /// Records from the lowest unacknowledged on, when that one arrived, and of them those that were not
    /// handed over yet.
    [[nodiscard]] std::uint64_t in_window() const noexcept { return window_.size(); }
    [[nodiscard]] std::optional<wall_time> oldest_arrival() const;
    [[nodiscard]] std::uint64_t unhanded() const noexcept { return window_.end() - next_; }
    [[nodiscard]] const counters& totals() const noexcept { return counters_; }

private:
    /// A record that failed at least once and is not acknowledged.
    struct suspect {
        std::uint32_t attempts{0};
        bool waits{false};    // for its next attempt; else it is with the handler
        bool verdict{false};  // its last failure was its own
        error why;
    };
    struct call {
        index first;
        std::size_t records;
        std::shared_ptr<const std::vector<index>> places;
        std::uint32_t attempt;
    };

    [[nodiscard]] static index place_of(const call& c, std::size_t i) {
        return c.places ? (*c.places)[i] : c.first + i;
    }
    [[nodiscard]] action next_suspect(mono_time now);
    [[nodiscard]] hand hand_new();
    [[nodiscard]] hand hand_again(const std::vector<index>& which);
    [[nodiscard]] bool last_attempt(const suspect& s) const;
    void blame(index which, bool verdict, const error& why);
    void after_failure(mono_time now, std::uint64_t random, const error& why);

    const shard_options& options_;
    shard_id shard_;
    ack_window window_;
    backoff backoff_;
    index next_{0};  // the first record that was never handed over
    std::map<index, suspect> suspects_;
    std::size_t waiting_{0};  // suspects that wait
    std::optional<call> calling_;
    std::optional<index> burying_;
    mono_time retry_at_{};
    mono_time bury_at_{};
    index reported_{0};
    bool end_read_{false};
    bool draining_{false};
    std::optional<error> stopped_;
    counters counters_;
};

}  // namespace millrace
