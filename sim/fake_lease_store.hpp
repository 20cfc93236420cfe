/// An in-memory lease store that behaves as badly as the port allows.
///
/// The rows live in a `lease_table` of the world; each host has a `fake_lease_store` of its own over it.
#pragma once

#include "link.hpp"
#include "port/lease_store.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace::sim {

/// The rows, and the only place where a condition is checked.
class lease_table {
public:
    /// Sees every accepted change, and whose it is; null stands for an absent row.
    using observer =
        std::function<void(const std::string& client, const lease_row* before, const lease_row* after)>;

    result<void> write(const lease_row& row, std::optional<version> expected, const std::string& client);
    result<void> remove(const lease_key& key, version expected, const std::string& client);

    /// Writes whatever stands there: for tests that set a scene.
    void put(const lease_row& row) { rows_[key_of(row)] = row; }

    /// The row stands there and cannot be read, until `mend`. Of a worker it is the counter, which no
    /// heartbeat fits any more.
    void damage(const lease_key& key) { damaged_.insert(key); }
    void mend(const lease_key& key) { damaged_.erase(key); }
    [[nodiscard]] std::optional<error> damage_of(const lease_key& key) const;

    /// Loses everything, as a store whose file was deleted and made anew.
    void clear() { rows_.clear(); }

    [[nodiscard]] const lease_row* find(const lease_key& key) const;
    [[nodiscard]] const std::map<lease_key, lease_row>& rows() const noexcept { return rows_; }
    void observe(observer what) { observer_ = std::move(what); }

private:
    [[nodiscard]] bool hides_counter(const lease_key& key) const {
        return std::holds_alternative<incarnation>(key) && damaged_.contains(key);
    }

    std::map<lease_key, lease_row> rows_;
    std::set<lease_key> damaged_;
    observer observer_;
};

class fake_lease_store final : public lease_store {
public:
    /// `name` tells the clients of one table apart.
    fake_lease_store(
        lease_table& table,
        scheduler& world,
        host& client,
        rng& random,
        const faults& plan,
        std::string name = "a client"
    )
        : table_(table), link_(world, client, random, plan, "the lease store"), name_(std::move(name)) {}

    void list_workers(completion<std::vector<worker_row>> done) override;
    void list_shards(completion<std::vector<shard_row>> done) override;
    void read(lease_key key, completion<std::optional<lease_row>> done) override;
    void write(lease_row row, std::optional<version> expected, completion<void> done) override;
    void remove(lease_key key, version expected, completion<void> done) override;

    /// Requests by name: `list_workers`, `list_shards`, `read`, `write`, `remove`.
    void force(std::string_view request, fate what) { link_.force(request, what); }

private:
    lease_table& table_;
    link link_;
    std::string name_;
};

}  // namespace millrace::sim
