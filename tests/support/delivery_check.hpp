/// Counts what became of numbered events: lost, out of order, delivered twice.
///
/// Events carry a header `event-number`, or, where the stream keeps no headers, the number as member `order`
/// of their JSON value; within one key, numbers grow in the order of commit. The check reads the lines that
/// `millrace consume --print` wrote, or is told of the records of a topic. When several workers append to one
/// file, its order is the true order of delivery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace millrace::support {

inline constexpr std::string_view event_number_header = "event-number";

struct delivery_report {
    std::uint64_t written{0};
    std::uint64_t delivered{0};  ///< Different events.
    std::uint64_t lost{0};
    std::uint64_t out_of_order{0};     ///< First deliveries that came after a later one of their key.
    std::uint64_t published_twice{0};  ///< Further copies of an event in the stream: the relay's duplicates.
    std::uint64_t handed_twice{0};     ///< Further deliveries of one record: the consumers' duplicates.
    std::uint64_t broken_lines{0};     ///< Cut by a kill in the middle of a write; never acknowledged.
    std::uint64_t unknown{0};          ///< Delivered, but never written.
    std::map<std::string, std::uint64_t> by_worker;

    [[nodiscard]] bool clean() const noexcept { return lost == 0 && out_of_order == 0 && unknown == 0; }
};

class delivery_check {
public:
    /// Before or after its delivery is seen.
    void written(std::uint64_t number) { written_.insert(number); }

    /// One line of output, without its newline. Returns the event's number when it is delivered for the first
    /// time, otherwise 0.
    std::uint64_t delivered(std::string_view line);

    /// One record of a topic whose records are each read once, in the order of their partition. Without a key
    /// there is no order. True when the event is delivered for the first time.
    bool delivered(std::uint64_t number, const std::optional<std::string>& key);

    [[nodiscard]] delivery_report report() const;
    [[nodiscard]] std::size_t distinct() const noexcept { return delivered_.size(); }

    /// Of the events that were written but not delivered, the first few.
    [[nodiscard]] std::vector<std::uint64_t> missing(std::size_t limit) const;

private:
    std::set<std::uint64_t> written_;
    std::unordered_set<std::uint64_t> delivered_;
    std::unordered_set<std::string> records_;  // stream, sequence and sub-sequence: one record of the stream
    std::unordered_map<std::string, std::uint64_t> newest_of_key_;
    delivery_report counts_;
};

}  // namespace millrace::support
