#include "relay_sum.hpp"

#include <algorithm>
#include <cstddef>

namespace millrace {

namespace {

constexpr std::size_t named_max = 20;
constexpr std::size_t holders_max = 10;

void add(outbox_look& sum, const outbox_look& one) {
    sum.backlog += one.backlog;
    if (one.oldest_age) sum.oldest_age = std::max(sum.oldest_age.value_or(*one.oldest_age), *one.oldest_age);
    for (const auto& holder : one.holders) {
        if (sum.holders.size() < holders_max) sum.holders.push_back(holder);
    }
}

}  // namespace

relay_status sum_of(const std::vector<relay_status>& all) {
    if (all.size() == 1) return all.front();
    relay_status sum;
    sum.ready = !all.empty();
    for (const auto& one : all) {
        sum.leading = sum.leading || one.leading;
        sum.epoch = std::max(sum.epoch, one.epoch);
        sum.published += one.published;
        sum.acknowledged += one.acknowledged;
        sum.deleted += one.deleted;
        sum.retried += one.retried;
        sum.buried += one.buried;
        for (const auto id : one.first_buried) {
            if (sum.first_buried.size() < named_max) sum.first_buried.push_back(id);
        }
        sum.in_flight += one.in_flight;
        sum.gaps += one.gaps;
        if (one.outbox) {
            if (!sum.outbox) sum.outbox.emplace();
            add(*sum.outbox, *one.outbox);
        }
        sum.duplicates_at_risk += one.duplicates_at_risk;
        sum.bytes_in_memory += one.bytes_in_memory;
        sum.awaiting += one.awaiting;
        if (!sum.schemas) sum.schemas = one.schemas;
        sum.left += one.left;
        for (const auto id : one.first_left) {
            if (sum.first_left.size() < named_max) sum.first_left.push_back(id);
        }
        if (sum.not_ready.empty()) sum.not_ready = one.not_ready;
        sum.ended = std::max(sum.ended, one.ended);
        sum.ready = sum.ready && one.ready;
        if (!sum.last_error) sum.last_error = one.last_error;
    }
    return sum;
}

}  // namespace millrace
