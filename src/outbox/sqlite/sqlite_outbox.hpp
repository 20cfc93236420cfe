/// An outbox in a SQLite file, as the relay sees it.
///
/// The work is done on a thread of the source with a connection of its own; completions come back on the
/// host. The file and its tables must exist (`millrace outbox init`, `create_outbox`). Deletes are not synced
/// one by one: a power cut may bring delivered rows back, which is a duplicate, never a loss. What decides a
/// row's fate is synced.
#pragma once

#include "port/host.hpp"
#include "port/outbox_source.hpp"

#include <millrace/outbox_look.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

struct sqlite_outbox_options {
    std::string path;
    std::string name{};  ///< How messages name the file, such as its URL; the path when empty.

    /// How long a request waits for other writers before it is `unavailable`; keep it below the lease time.
    milliseconds busy_timeout{1'000};

    /// Between two looks for new rows; see `db_thread_options`.
    milliseconds watch_min{2};
    milliseconds watch_max{10};
};

class sqlite_outbox final : public outbox_source {
public:
    /// Under these names, and no stream, the relay's lease is kept in the same file
    /// (`sqlite_lease_store_options::group`, and the shard).
    static constexpr const char* lease_group = "outbox";
    static constexpr const char* lease_shard = "outbox";

    sqlite_outbox(host& home, sqlite_outbox_options options);
    ~sqlite_outbox() override;

    void fetch(fetch_request request, completion<fetch_reply> done) override;

    /// Remembers no low-water mark: SQLite removes index entries with their rows, so the head costs nothing.
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override;
    void bury(bury_request request, epoch mine, completion<void> done) override;
    void start(completion<outbox_start> done) override;

    /// Whether the outbox could be read now, whatever it holds; for a relay that waits.
    void check(completion<void> done);

    void look(completion<outbox_look> done);

    /// Begins with the first fetch.
    void watch(std::function<void()> changed) override;
    [[nodiscard]] bool signals_changes() const override { return true; }

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
