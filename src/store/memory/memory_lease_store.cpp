#include "memory_lease_store.hpp"

#include "assert.hpp"

#include <string>
#include <utility>

namespace millrace {

template <class Row>
std::vector<Row> memory_lease_table::all() const {
    const std::lock_guard lock(mutex_);
    std::vector<Row> found;
    for (const auto& [key, row] : rows_) {
        if (const auto* wanted = std::get_if<Row>(&row)) found.push_back(*wanted);
    }
    return found;
}

std::vector<worker_row> memory_lease_table::workers() const {
    return all<worker_row>();
}

std::vector<shard_row> memory_lease_table::shards() const {
    return all<shard_row>();
}

std::optional<lease_row> memory_lease_table::read(const lease_key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = rows_.find(key);
    if (found == rows_.end()) return std::nullopt;
    return found->second;
}

result<void> memory_lease_table::write(const lease_row& row, std::optional<version> expected) {
    if (expected) MILLRACE_ASSERT(version_of(row).value() == expected->value() + 1);
    const std::lock_guard lock(mutex_);
    const auto key = key_of(row);
    const auto found = rows_.find(key);
    if (!expected && found != rows_.end()) {
        return fail(errc::conflict, "the row exists already; read it again and decide anew");
    }
    if (expected && (found == rows_.end() || version_of(found->second) != *expected)) {
        return fail(errc::conflict, "the row has changed or is gone; read it again and decide anew");
    }
    rows_.insert_or_assign(key, row);
    return {};
}

result<void> memory_lease_table::remove(const lease_key& key, version expected) {
    const std::lock_guard lock(mutex_);
    const auto found = rows_.find(key);
    if (found == rows_.end() || version_of(found->second) != expected) {
        return fail(errc::conflict, "the row has changed or is gone; read it again and decide anew");
    }
    rows_.erase(found);
    return {};
}

namespace {

template <class T>
void complete(host& home, completion<T> done, result<T> outcome) {
    home.post([done = std::move(done), outcome = std::move(outcome)] { done(outcome); });
}

}  // namespace

memory_lease_store::memory_lease_store(host& home, std::shared_ptr<memory_lease_table> table)
    : home_(home), table_(std::move(table)) {
    MILLRACE_ASSERT(table_ != nullptr);
}

void memory_lease_store::list_workers(completion<std::vector<worker_row>> done) {
    complete<std::vector<worker_row>>(home_, std::move(done), table_->workers());
}

void memory_lease_store::list_shards(completion<std::vector<shard_row>> done) {
    complete<std::vector<shard_row>>(home_, std::move(done), table_->shards());
}

void memory_lease_store::read(lease_key key, completion<std::optional<lease_row>> done) {
    complete<std::optional<lease_row>>(home_, std::move(done), table_->read(key));
}

void memory_lease_store::write(lease_row row, std::optional<version> expected, completion<void> done) {
    complete<void>(home_, std::move(done), table_->write(row, expected));
}

void memory_lease_store::remove(lease_key key, version expected, completion<void> done) {
    complete<void>(home_, std::move(done), table_->remove(key, expected));
}

}  // namespace millrace
