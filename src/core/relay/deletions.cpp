#include "relay/deletions.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

void deletions::acknowledged(mono_time now, row_id id) {
    waiting_.push_back(id);
    if (!oldest_) oldest_ = now;
}

mono_time deletions::due(std::size_t rows_max, nanoseconds delay) const {
    if (outstanding_ || size() == 0) return mono_time::max();
    if (!leaving_.empty() || waiting_.size() >= rows_max) return not_before_;
    return std::max(not_before_, *oldest_ + delay);
}

std::vector<id_range> deletions::next(mono_time now, std::size_t rows_max, nanoseconds delay) {
    std::vector<id_range> ranges;
    if (now < due(rows_max, delay)) return ranges;
    if (leaving_.empty()) {
        if (!std::is_sorted(waiting_.begin(), waiting_.end())) std::sort(waiting_.begin(), waiting_.end());
        const auto count = static_cast<std::ptrdiff_t>(std::min(rows_max, waiting_.size()));
        leaving_.assign(waiting_.begin(), waiting_.begin() + count);
        waiting_.erase(waiting_.begin(), waiting_.begin() + count);
        // What remains came no earlier; its time counts from now, which is at most one delay late.
        oldest_ = waiting_.empty() ? std::nullopt : std::optional(now);
    }
    for (const auto id : leaving_) {
        const auto adjacent =
            !ranges.empty() && ranges.back().last < id && ranges.back().last.value() + 1 == id.value();
        if (adjacent) {
            ranges.back().last = id;
        } else {
            ranges.push_back({id, id});
        }
    }
    outstanding_ = true;
    return ranges;
}

std::vector<row_id> deletions::succeeded() {
    outstanding_ = false;
    not_before_ = {};
    return std::exchange(leaving_, {});
}

void deletions::failed(mono_time retry_at) {
    outstanding_ = false;
    not_before_ = retry_at;
}

void deletions::clear() {
    *this = deletions{};
}

}  // namespace millrace
