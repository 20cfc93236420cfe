/// The lanes and topics in trouble: suspects are tried one by one, and what follows them in their lanes
/// waits.
///
/// One row a lane is in flight on the probe channel, many lanes at once. A lane returns to main when its
/// suspects are settled; a topic when one of its rows is taken. Rows that the sink will not take are buried
/// by policy, rows of parked lanes in batches. Memory is bounded: beyond it, rows of lanes in trouble are
/// deferred, that is dropped and later read again. The caller carries the work out and gives outcomes back.
/// Pure; no thread safety.
#pragma once

#include "port/event_sink.hpp"
#include "relay/lane.hpp"
#include "relay/main_channel.hpp"
#include "relay/options.hpp"
#include "relay/row_news.hpp"
#include "relay/sink_view.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace {

class lanes {
public:
    /// Both must outlive it.
    lanes(const relay_options& options, const sink_view& sink) : options_(options), sink_(sink) {}
    lanes(const lanes&) = delete;
    lanes& operator=(const lanes&) = delete;
    ~lanes() = default;

    /// Nothing is in trouble: no row needs a look-up.
    [[nodiscard]] bool empty() const noexcept {
        return lanes_.empty() && topics_.empty() && deferred_topics_.empty() && barred_.empty() &&
               paused_.empty();
    }

    /// What rows await may have come.
    void look_again();

    /// The row must not go on main.
    [[nodiscard]] bool claims(const outbox_row& row) const;

    /// Takes a row. `barrier`: the last request on main that may hold rows of its lane. False when the row is
    /// deferred, or its topic paused: the caller forgets it.
    [[nodiscard]] bool hold(troubled_row row, std::uint64_t barrier);

    /// Rows of the topic that wait for main must be taken out (`claims`) and held.
    void suspect_topic(std::string_view topic);
    /// Nothing more of these topics goes out; an empty one stands for all. True when they are others than
    /// before: rows that wait for main must be taken out and held.
    [[nodiscard]] bool pause(const std::vector<std::string>& topics);

    /// How often a topic got into trouble.
    [[nodiscard]] std::uint64_t topics_suspected() const noexcept { return topics_suspected_; }

    struct parked_change {
        std::size_t parked{0};            ///< Lanes that were not known to be.
        std::size_t freed{0};             ///< Lanes that are not any more.
        std::vector<held_row> forgotten;  ///< Rows of freed lanes: to be forgotten and read again.
    };
    /// The lanes that are parked in the database.
    [[nodiscard]] parked_change set_parked(const std::vector<lane_key>& parked);

    struct probe {
        std::uint64_t number;
        outgoing_row row;
    };
    struct burial {
        std::uint64_t number;
        bury_request what;
    };
    struct work {
        std::vector<probe> probes;
        std::vector<burial> burials;
        std::vector<held_row> healthy;  ///< Back to main.
        std::vector<held_row> paused;   ///< To be forgotten: the end of the pause reads them again.
        std::optional<error> stop;      ///< By the policy `stop`: nothing more may be published.
    };
    [[nodiscard]] work advance(
        mono_time now, const main_channel& main, std::size_t rows_room, std::size_t bytes_room
    );

    struct probe_result {
        std::optional<held_row> published;
        std::optional<row_news> retried;  ///< Not published, and to be tried again.
    };
    [[nodiscard]] probe_result probed(
        mono_time now, std::uint64_t random, std::uint64_t number, const result<publish_outcome>& outcome
    );

    struct bury_result {
        std::vector<held_row> gone;
        std::vector<held_row> forgotten;  ///< The lane was un-parked: rebuild the window.
        std::optional<row_news> news;     ///< Of what was buried, or of a lane that was un-parked.
        bool parked{false};               ///< The lane was parked with it.
        bool unparked{false};
        std::optional<error> trouble;
    };
    [[nodiscard]] bury_result buried(
        mono_time now, std::uint64_t random, std::uint64_t number, const result<void>& outcome
    );

    /// The lowest row that was deferred.
    [[nodiscard]] std::optional<row_id> deferred_from() const noexcept { return deferred_from_; }
    /// There is room for rows that were deferred: a lane has settled what it had, or a topic most of it.
    [[nodiscard]] bool wants_rewind() const noexcept;
    /// All deferred rows will be read again, in order.
    void rewound();

    void clear();

    [[nodiscard]] mono_time due() const noexcept;
    [[nodiscard]] std::size_t probes_in_flight() const noexcept { return probes_.size(); }
    [[nodiscard]] std::size_t probe_bytes_in_flight() const noexcept { return probe_bytes_; }
    [[nodiscard]] std::size_t burials_in_flight() const noexcept { return burials_.size(); }
    [[nodiscard]] std::uint64_t rows_retried() const noexcept { return rows_retried_; }
    [[nodiscard]] std::size_t rows_held() const noexcept { return rows_; }
    [[nodiscard]] std::size_t rows_awaiting() const noexcept;
    [[nodiscard]] std::size_t count() const noexcept { return lanes_.size(); }

    void each_waiting(std::vector<held_row*>& into);

private:
    struct topic_trouble {
        lane* scout{nullptr};  ///< While the topic rests, only this lane tries it.
        std::deque<lane*> waiting;
    };
    struct text_hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view s) const noexcept { return std::hash<std::string_view>{}(s); }
    };
    struct job {
        lane* of;
        std::size_t rows;
        bury_request::condition when;
        row_news news;
    };

    /// In trouble, or put off; beyond, quiet ones are forgotten and judged anew, and all are put off.
    static constexpr std::size_t topics_max = 1'000;

    /// At least so many eighths of the window, by rows or by bytes.
    [[nodiscard]] bool holds(std::size_t eighths) const noexcept;
    [[nodiscard]] bool is_full() const noexcept;
    [[nodiscard]] bool is_paused(std::string_view topic) const;
    [[nodiscard]] bool is_deferred(std::string_view topic) const;
    [[nodiscard]] bool must_defer_topic(const outbox_row& row) const;
    [[nodiscard]] bool is_barred(const outbox_row& row) const;
    void bar(const lane_ref& which);
    void defer(row_id id);
    [[nodiscard]] lane& find_or_make(const outbox_row& row, std::uint64_t barrier);
    [[nodiscard]] bool must_defer(const lane& of, row_id id) const;
    [[nodiscard]] topic_trouble* trouble_of(const lane& of);
    void make_ready(lane& which);
    void rest(mono_time now, lane& which, nanoseconds wait);
    void wake(mono_time now);
    [[nodiscard]] bool proceed(lane& which, std::size_t& rows_room, std::size_t& bytes_room, work& out);
    [[nodiscard]] bool awaits(lane& which);
    void convict(lane& which, work& out);
    void start_burials(mono_time now, work& out);
    [[nodiscard]] bury_request request_for(mono_time now, lane& which, std::size_t& rows) const;
    [[nodiscard]] bool refused(mono_time now, std::uint64_t random, lane& which, const error& why);
    void clear_topic(const std::string& topic);
    void release_scout(lane& which);
    void finish(lane& which);
    [[nodiscard]] held_row drop_front(lane& which);
    void drop_all(lane& which, std::vector<held_row>& into);
    void unqueue(const lane* which);

    const relay_options& options_;
    const sink_view& sink_;
    std::unordered_map<lane_id, std::unique_ptr<lane>, lane_hash, lane_equal> lanes_;
    std::unordered_map<std::string, topic_trouble, text_hash, std::equal_to<>> topics_;
    std::deque<lane*> blocked_;  // by barrier
    std::deque<lane*> ready_;
    std::deque<lane*> need_place_;  // ready, but probe had no room
    std::vector<lane*> awaiting_;
    std::deque<lane*> to_bury_;
    std::multimap<mono_time, lane*> resting_;
    std::map<std::uint64_t, lane*> probes_;
    std::map<std::uint64_t, job> burials_;
    std::uint64_t last_number_{0};
    std::size_t rows_{0};
    std::size_t bytes_{0};
    std::size_t probe_bytes_{0};
    std::uint64_t rows_retried_{0};
    std::uint64_t topics_suspected_{0};
    std::optional<row_id> deferred_from_;
    /// Rows of theirs were dropped without a lane: no lane may be made until they are read again. An empty
    /// one stands for all.
    std::set<std::string, std::less<>> deferred_topics_;
    /// The same for lanes that have no row here: a bit of their hash, which costs others of it a delay.
    std::vector<bool> barred_;
    std::set<std::string, std::less<>> paused_;
    bool rewind_wanted_{false};
};

}  // namespace millrace
