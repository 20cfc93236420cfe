#include "support/keyed_check.hpp"

#include <algorithm>
#include <charconv>

namespace millrace::support {

void keyed_check::fault(
    keyed_report& report, const lane_name& where, std::uint64_t number, const char* what
) {
    if (!report.first_fault.empty()) return;
    report.first_fault =
        "number " + std::to_string(number) + " of " + where.first + "/" + where.second + " " + what;
}

void keyed_check::seen(std::string_view topic, std::string_view key, std::string_view value) {
    ++counts_.records;
    const lane_name name{topic, key};
    std::uint64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    if (number == 0) {
        ++counts_.unknown;
        fault(counts_, name, 0, "is no number");
        return;
    }
    auto& lane = lanes_[name];
    if (number <= lane.complete || lane.ahead.contains(number)) {
        ++counts_.twice;
        return;
    }
    ++distinct_;
    if (number < lane.newest()) {
        ++counts_.inverted;
        fault(counts_, name, number, "came behind a later one");
    }
    lane.ahead.insert(number);
    while (!lane.ahead.empty() && *lane.ahead.begin() == lane.complete + 1) {
        lane.ahead.erase(lane.ahead.begin());
        ++lane.complete;
    }
}

void keyed_check::committed(const std::string& topic, const std::string& key, std::uint64_t count) {
    const lane_name name{topic, key};
    auto& lane = lanes_[name];
    lane.judged = true;
    const auto never =
        static_cast<std::uint64_t>(std::distance(lane.ahead.upper_bound(count), lane.ahead.end())) +
        (lane.complete > count ? lane.complete - count : 0);
    if (never > 0) fault(counts_, name, lane.newest(), "was never committed");
    counts_.unknown += never;
    const auto delivered = lane.delivered() - never;
    if (delivered < count) fault(counts_, name, lane.complete + 1, "is lost");
    counts_.lost += count - delivered;
    counts_.delivered += delivered;
}

keyed_report keyed_check::report() const {
    auto result = counts_;
    for (const auto& [name, lane] : lanes_) {
        if (lane.judged) continue;
        result.unknown += lane.delivered();
        fault(result, name, lane.newest(), "is of a lane that nobody wrote");
    }
    return result;
}

}  // namespace millrace::support
