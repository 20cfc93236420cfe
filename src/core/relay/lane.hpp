/// One lane in trouble: its rows by id, and what is being done about the first of them.
///
/// Only `lanes` uses it. Pure; no thread safety.
#pragma once

#include "port/outbox_source.hpp"
#include "relay/held_rows.hpp"
#include "retry/backoff.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace millrace {

/// A lane as a row names it, without copies. A row without a key is a lane of its own.
struct lane_ref {
    std::string_view topic;
    std::optional<std::string_view> key;
    std::optional<std::int32_t> partition;
    std::optional<row_id> alone;

    explicit lane_ref(const outbox_row& row)
        : topic(row.topic),
          key(row.key),
          partition(row.partition),
          alone(row.key ? std::nullopt : std::optional(row.id)) {}
    explicit lane_ref(const lane_key& lane) : topic(lane.topic), key(lane.key), partition(lane.partition) {}

    bool operator==(const lane_ref&) const = default;
};

struct lane_id {
    lane_key key;
    std::optional<row_id> alone;

    explicit lane_id(const lane_ref& ref) : key{std::string(ref.topic), {}, ref.partition}, alone(ref.alone) {
        if (ref.key) key.key.emplace(*ref.key);
    }
    [[nodiscard]] lane_ref ref() const {
        lane_ref view(key);
        view.alone = alone;
        return view;
    }
};

struct lane_hash {
    using is_transparent = void;
    std::size_t operator()(const lane_ref& lane) const noexcept;
    std::size_t operator()(const lane_id& lane) const noexcept { return (*this)(lane.ref()); }
};

/// For people: tells lanes apart without showing a key.
[[nodiscard]] inline std::uint32_t short_hash(const lane_id& lane) noexcept {
    const std::uint64_t full = lane_hash{}(lane);
    return static_cast<std::uint32_t>(full ^ (full >> 32));
}

struct lane_equal {
    using is_transparent = void;
    bool operator()(const lane_id& a, const lane_id& b) const noexcept { return a.ref() == b.ref(); }
    bool operator()(const lane_ref& a, const lane_id& b) const noexcept { return a == b.ref(); }
    bool operator()(const lane_id& a, const lane_ref& b) const noexcept { return a.ref() == b; }
};

struct troubled_row {
    held_row row;
    bool suspect{false};
    bool unready{false};                     ///< Only suspect because it awaits something.
    std::uint32_t attempts{0};               ///< Verdicts that may mend.
    mono_time first_attempt{};               ///< When the first of them came.
    std::shared_ptr<const error> verdict{};  ///< It is to be buried.
};

struct lane {
    enum class state : std::uint8_t {
        blocked,   ///< Rows of it may still be in flight on main.
        awaiting,  ///< Its first row awaits something that the sink has asked for.
        ready,
        waiting,  ///< Another lane tries the topic first.
        probing,
        resting,  ///< Before the next attempt.
        to_bury,
        burying,
        idle,  ///< Parked, without a row.
    };

    lane(const lane_id& name, nanoseconds retry_min, nanoseconds retry_max)
        : id(name), wait(retry_min, retry_max) {}

    /// In order of id, but behind the rows that are busy.
    void insert(troubled_row row);
    troubled_row pop_front();

    [[nodiscard]] bool empty() const noexcept { return head == rows.size(); }
    [[nodiscard]] std::size_t size() const noexcept { return rows.size() - head; }
    [[nodiscard]] troubled_row& front() { return rows[head]; }
    [[nodiscard]] row_id last_id() const { return rows.back().row.id(); }

    const lane_id& id;  // the key of the map that holds the lane
    std::vector<troubled_row> rows;
    std::size_t head{0};
    std::size_t busy{0};  ///< Rows at the front that are in flight or about to be buried.
    std::size_t suspects{0};
    state now{state::blocked};
    bool parked{false};
    bool deferred{
        false};  ///< Later rows were dropped from memory: none may be taken until they are read again.
    std::uint64_t barrier{0};  ///< The last request on main that may hold rows of it.
    backoff wait;
};

}  // namespace millrace
