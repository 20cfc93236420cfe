#include "port/lease_store.hpp"

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

}  // namespace millrace
