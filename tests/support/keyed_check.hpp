/// What became of events that are numbered within their lane: 1, 2, 3 and so on, in the order of commit.
///
/// It is told of the records of each partition in their order, and at the end how many were committed of each
/// lane. Duplicates are what repeats a number; an inversion is a first delivery behind the first delivery of
/// a later number. Its memory is one number a lane and what is out of order.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::support {

struct keyed_report {
    std::uint64_t records{0};  ///< Seen, with duplicates.
    std::uint64_t delivered{0};
    std::uint64_t lost{0};
    std::uint64_t inverted{0};
    std::uint64_t twice{0};
    std::uint64_t unknown{0};  ///< Delivered, but never committed; or no number.
    std::string first_fault;   ///< The first that was seen of an inversion, and of what is lost or unknown.

    [[nodiscard]] bool clean() const noexcept { return lost == 0 && inverted == 0 && unknown == 0; }
};

class keyed_check {
public:
    /// `value` begins with the number, in decimal digits.
    void seen(std::string_view topic, std::string_view key, std::string_view value);

    /// So many events of the lane were committed; each lane once, after all was seen.
    void committed(const std::string& topic, const std::string& key, std::uint64_t count);

    /// Events of lanes that `committed` did not name are unknown.
    [[nodiscard]] keyed_report report() const;
    [[nodiscard]] std::uint64_t distinct() const noexcept { return distinct_; }
    [[nodiscard]] std::uint64_t inverted() const noexcept { return counts_.inverted; }

private:
    using lane_name = std::pair<std::string, std::string>;
    struct progress {
        std::uint64_t complete{0};      // all up to here were delivered
        std::set<std::uint64_t> ahead;  // and these
        bool judged{false};

        [[nodiscard]] std::uint64_t newest() const { return ahead.empty() ? complete : *ahead.rbegin(); }
        [[nodiscard]] std::uint64_t delivered() const { return complete + ahead.size(); }
    };

    static void fault(keyed_report& report, const lane_name& where, std::uint64_t number, const char* what);

    std::map<lane_name, progress> lanes_;
    std::uint64_t distinct_{0};
    keyed_report counts_;
};

}  // namespace millrace::support
