/// Leases in memory: for tests, the simulation and `--state memory:`.
///
/// A table is the shared "database" of one group and may be used from several threads; each store sees it on
/// behalf of one host. A request takes effect when it is made and its outcome is posted to the host.
/// Stricter than a database: a write whose version does not follow from the expected one ends the process.
#pragma once

#include "port/host.hpp"
#include "port/lease_store.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace millrace {

/// The rows of one group. All functions are thread-safe.
class memory_lease_table {
public:
    [[nodiscard]] std::vector<worker_row> workers() const;
    [[nodiscard]] std::vector<shard_row> shards() const;
    [[nodiscard]] std::optional<lease_row> read(const lease_key& key) const;
    result<void> write(const lease_row& row, std::optional<version> expected);
    result<void> remove(const lease_key& key, version expected);

private:
    template <class Row>
    [[nodiscard]] std::vector<Row> all() const;

    mutable std::mutex mutex_;
    std::map<lease_key, lease_row> rows_;
};

class memory_lease_store final : public lease_store {
public:
    memory_lease_store(host& home, std::shared_ptr<memory_lease_table> table);

    void list_workers(completion<std::vector<worker_row>> done) override;
    void list_shards(completion<std::vector<shard_row>> done) override;
    void read(lease_key key, completion<std::optional<lease_row>> done) override;
    void write(lease_row row, std::optional<version> expected, completion<void> done) override;
    void remove(lease_key key, version expected, completion<void> done) override;

private:
    host& home_;
    std::shared_ptr<memory_lease_table> table_;
};

}  // namespace millrace
