/// Leases and checkpoints in a SQLite file, for processes of one machine.
///
/// Several groups can share a file, and the file can be an application's own database: all names begin with
/// `millrace_`. Every write is one conditional statement, durable when it completes. The work is done on a
/// thread of the store; completions come back on the host. The tables are described in
/// docs/lease-protocol.md.
#pragma once

#include "port/group_key.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"

#include <millrace/time.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace millrace {

struct sqlite_lease_store_options {
    std::string path;
    group_key group;         ///< Keeps the rows of groups that share a file apart.
    std::string name{};      ///< How messages name the file, such as its URL; the path when empty.
    bool create_file{true};  ///< Until it was used once; else a missing file is `not_found`. So with tables.
    bool only_reads{false};  ///< Then nothing is made, and the file need not be writable.
    std::string when_missing;  ///< What a person should do then; "check the path" when empty.

    /// How long a request waits for other writers before it is `unavailable`; keep it below the lease time.
    milliseconds busy_timeout{1'000};
};

class sqlite_lease_store final : public lease_store {
public:
    /// The newest layout of the tables that this program reads and writes.
    static constexpr std::int64_t schema_known = 1;

    sqlite_lease_store(host& home, sqlite_lease_store_options options);
    ~sqlite_lease_store() override;

    void list_workers(completion<std::vector<worker_row>> done) override;
    void list_shards(completion<std::vector<shard_row>> done) override;
    void read(lease_key key, completion<std::optional<lease_row>> done) override;
    void write(lease_row row, std::optional<version> expected, completion<void> done) override;
    void remove(lease_key key, version expected, completion<void> done) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
