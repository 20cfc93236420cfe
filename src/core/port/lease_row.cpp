#include "port/lease_store.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

lease_key key_of(const lease_row& row) {
    if (const auto* worker = std::get_if<worker_row>(&row)) return worker->incarnation;
    if (const auto* shard = std::get_if<shard_row>(&row)) return shard->shard;
    return std::monostate{};
}

version version_of(const lease_row& row) {
    if (const auto* worker = std::get_if<worker_row>(&row)) return worker->counter;
    if (const auto* shard = std::get_if<shard_row>(&row)) return shard->version;
    return std::get<group_row>(row).version;
}

shard_row unreadable_row(shard_id shard, const error& why) {
    shard_row row;
    row.shard = std::move(shard);
    row.unreadable = why.detail;
    return row;
}

namespace {

template <class Row>
std::optional<error> first_unreadable(const std::vector<Row>& rows) {
    const auto first =
        std::find_if(rows.begin(), rows.end(), [](const Row& row) { return !row.unreadable.empty(); });
    if (first == rows.end()) return std::nullopt;
    return error{errc::corrupt, retry_advice::never, false, first->unreadable};
}

}  // namespace

std::optional<error> unreadable_in(const std::vector<shard_row>& rows) {
    return first_unreadable(rows);
}

std::optional<error> unreadable_in(const std::vector<worker_row>& rows) {
    return first_unreadable(rows);
}

shard_id foreign_row(std::string_view key) {
    return shard_id{"(row " + std::string(key) + ")"};
}

}  // namespace millrace
