/// Accounts for every row that a relay publishes again: promise 6, counted at the sink.
///
/// A row goes out again only when its last try failed or its reply was lost, or when another owner takes over
/// and the row was in flight or published so lately that its deletion was not yet due.
#pragma once

#include "health.hpp"
#include "port/event_sink.hpp"
#include "trace.hpp"

#include <millrace/names.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace millrace::sim {

/// What the options promise.
struct publish_bounds {
    nanoseconds delete_delay{20ms};
    std::size_t client_window_rows{10'000};
    nanoseconds lease{10s};
};

class publish_book {
public:
    publish_book(scheduler& world, verdicts& v, const health_book& health)
        : world_(world), verdicts_(v), health_(health) {}

    publish_bounds bounds;

    void handed(const std::string& who, epoch under, const std::vector<row_id>& rows);
    void answered(
        const std::string& who,
        epoch under,
        const std::vector<row_id>& rows,
        const result<publish_outcome>& outcome
    );

    /// The lease is over: an answer that still comes is nobody's.
    void ended(const std::string& who, epoch under) { over_.emplace(who, under); }

    /// The operator put the row back, or made the whole table anew: it may go out again.
    void put_back(row_id id) { rows_[id].excused = true; }
    void table_restored() { restored_ = world_.now(); }

    /// The sink appended a row that it had already.
    void repeated(row_id id);

    [[nodiscard]] const repeats& counted() const noexcept { return counted_; }

private:
    enum class answer : std::uint8_t { none, taken, failed };
    struct row {
        std::string who;
        epoch under;
        answer last{answer::none};
        world_time sent{0};
        world_time at{0};  // of the answer, or of the sending
        std::uint32_t handed{0};
        bool excused{false};
        cause why{cause::retry};
    };

    [[nodiscard]] bool read_before_restoration(const row& before) const;
    cause judge(const std::string& who, epoch under, row_id id, const row& before) const;

    scheduler& world_;
    verdicts& verdicts_;
    const health_book& health_;
    std::map<row_id, row> rows_;
    std::map<std::pair<std::string, epoch>, std::size_t> in_flight_;
    std::set<std::pair<std::string, epoch>> over_;
    std::optional<world_time> restored_;
    repeats counted_;
};

}  // namespace millrace::sim
