/// Decides which rows a sink puts into which stream next, so that no key is ever inverted.
///
/// PutRecords keeps no order within a call and may refuse single records of it, so each key is once in a
/// call and in one call at a time; a record that is refused for a moment keeps its key waiting until it was
/// put, however long that takes; only a stream that holds many rows back for long fails as a whole. Rows
/// without a key have no order and go together. The first failure stops the queue: no row that was handed
/// over behind it is sent any more, while those before it still are.
/// Pure: the caller passes time and randomness in, carries the calls out and reports. No thread safety.
#pragma once

#include "port/event_sink.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace millrace {

struct put_queue_options {
    std::size_t call_records_max{500};
    std::size_t call_bytes_max{5 << 20};
    std::size_t calls_in_flight_max{16};  ///< To one stream.
    std::size_t calls_at_first{2};        ///< Of them, until it is known how fast it answers.

    /// A stream whose calls take longer gets fewer at a time, then smaller ones: those that queue up there
    /// would time out, be in doubt, and be published again.
    nanoseconds slow_call{std::chrono::seconds{1}};
    nanoseconds retry_min{
        std::chrono::milliseconds{50}};  ///< First pause of a row that was throttled; doubles.
    nanoseconds retry_max{std::chrono::seconds{1}};

    /// A row that is throttled for longer is spoken of, and fails where its stream holds more rows back than
    /// this: they would take the room of all other streams.
    nanoseconds retry_limit{std::chrono::seconds{5}};
    std::size_t throttled_rows_max{1'000};
    nanoseconds tell_every{std::chrono::minutes{1}};  ///< Of the same stream.
};

class put_queue {
public:
    using request_id = std::uint64_t;

    /// A row on its way.
    struct item {
        outgoing_row row;
        request_id request{0};  ///< To which its outcome belongs.
        std::uint64_t ticket{0};
        std::uint64_t key{0};  ///< A hash, which may stand for other keys, too; unused without a key.
        std::optional<mono_time> first_sent;
        std::uint32_t attempts{0};
    };
    struct call {
        std::string stream;
        std::vector<item> items;
        std::size_t bytes{0};
        mono_time sent{};
    };

    /// What became of a row of a call.
    enum class verdict : std::uint8_t {
        put,
        busy,
        too_large,  ///< The call was, for something on the way: its rows go again in smaller ones.
        failed
    };
    struct outcome {
        verdict is{verdict::put};
        error why;  ///< Unless it was put.
    };

    /// A row that is settled.
    struct settled {
        item what;
        std::optional<error> failed;
        bool of_stream{false};  ///< It failed for its stream, whoever else is well.
    };

    explicit put_queue(put_queue_options options) : options_(options) {}

    /// In the order of handing over; the row's own bytes count, as in `entry_of`.
    void add(request_id request, outgoing_row row, std::string_view stream, std::vector<settled>& out);

    /// A row that was found wanting before it was sent: as if it had been refused.
    void refuse(request_id request, outgoing_row row, error why, std::vector<settled>& out);

    /// The next call, if there is one to be made now.
    [[nodiscard]] std::optional<call> next(mono_time now);

    /// The call has ended: one outcome for each of its items. Appends what is settled by that.
    void done(
        mono_time now, std::uint64_t random, call what, std::vector<outcome> how, std::vector<settled>& out
    );

    /// Gives up what is not in flight. `open` lets it go on once nothing is.
    void stop(std::vector<settled>& out);
    void open() noexcept { stopped_behind_.reset(); }

    /// Why rows are throttled for long, once in a while of each stream; since the last call.
    [[nodiscard]] std::vector<error> take_slow() { return std::exchange(slow_, {}); }

    [[nodiscard]] std::size_t calls_in_flight() const noexcept { return calls_in_flight_; }

    /// When a row that waits for its retry is due; far in the future when none does.
    [[nodiscard]] mono_time due() const noexcept;

private:
    struct resting {
        mono_time until;
        item what;
    };
    struct stream_state {
        std::deque<item> waiting;  // in order
        std::vector<resting> rests;
        std::unordered_set<std::uint64_t> blocked;  // keys in flight or at rest
        std::size_t calls{0};
        std::size_t calls_allowed;
        std::size_t records_allowed;  // in a call
        std::size_t bytes_allowed;    // the same
        mono_time slowed_at{};
        std::optional<mono_time> told_at;  // that it is throttled for long
    };

    [[nodiscard]] nanoseconds pause_after(std::uint32_t attempts, std::uint64_t random) const;
    void adapt(mono_time now, const call& what, stream_state& to) const;
    [[nodiscard]] std::vector<item> take(stream_state& from, std::size_t& bytes);
    void wake(mono_time now, stream_state& which);
    [[nodiscard]] bool rests_on(mono_time now, const item& what, stream_state& in, const error& why);
    void fail(item what, error why, std::vector<settled>& out, bool of_stream = false);
    void purge_behind(std::uint64_t ticket, std::vector<settled>& out);
    void purge(stream_state& which, std::uint64_t behind, std::vector<settled>& out);

    put_queue_options options_;
    std::map<std::string, stream_state, std::less<>> streams_;
    std::string last_stream_;  // the one served last: they take turns
    std::uint64_t last_ticket_{0};
    std::size_t calls_in_flight_{0};
    std::optional<std::uint64_t> stopped_behind_;
    std::vector<error> slow_;
};

}  // namespace millrace
