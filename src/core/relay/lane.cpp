#include "relay/lane.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace millrace {

std::size_t lane_hash::operator()(const lane_ref& lane) const noexcept {
    const std::hash<std::string_view> text;
    const auto mix = [](std::size_t seed, std::size_t value) {
        return seed ^ (value + 0x9e3779b97f4a7c15U + (seed << 6) + (seed >> 2));
    };
    auto hash = text(lane.topic);
    if (lane.key) hash = mix(hash, text(*lane.key));
    if (lane.partition) hash = mix(hash, static_cast<std::size_t>(*lane.partition) + 1);
    if (lane.alone) hash = mix(hash, std::hash<row_id>{}(*lane.alone));
    return hash;
}

void lane::insert(troubled_row row) {
    if (row.suspect) ++suspects;
    const auto from = rows.begin() + static_cast<std::ptrdiff_t>(head + busy);
    auto at = rows.end();
    if (!empty() && row.row.id() < last_id())
        at = std::upper_bound(from, rows.end(), row, [](const troubled_row& a, const troubled_row& b) {
            return a.row.id() < b.row.id();
        });
    rows.insert(at, std::move(row));
}

troubled_row lane::pop_front() {
    auto row = std::move(rows[head++]);
    if (row.suspect) --suspects;
    if (busy > 0) --busy;
    if (head * 2 >= rows.size()) {
        rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(head));
        head = 0;
    }
    return row;
}

}  // namespace millrace
