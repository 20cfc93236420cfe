/// An outbox in PostgreSQL, as the relay sees it.
///
/// Two threads with a connection each, so that reading ahead and deleting overlap; completions come back on
/// the host. Deletes do not wait for the disk: a crash of the server may bring delivered rows back, which is
/// a duplicate, never a loss. What decides a row's fate does.
#pragma once

#include "pg_thread.hpp"
#include "port/host.hpp"
#include "port/outbox_source.hpp"
#include "server.hpp"

#include <millrace/outbox_look.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace millrace {

struct postgres_outbox_options {
    postgres::server server;  ///< With the table; `outbox` along the search_path when it names none.

    /// A read that takes long harms nobody but the relay.
    postgres::limits reading{
        .statement = milliseconds{30'000}, .lock = milliseconds{1'000}, .reply = milliseconds{35'000}};

    /// Below the lease time.
    postgres::limits writing{};
};

class postgres_outbox final : public outbox_source {
public:
    postgres_outbox(host& home, postgres_outbox_options options);
    ~postgres_outbox() override;

    void fetch(fetch_request request, completion<fetch_reply> done) override;
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override;
    void bury(bury_request request, epoch mine, completion<void> done) override;
    void start(completion<outbox_start> done) override;

    /// PostgreSQL's own signal costs writers most of their speed, so it is not used: readers poll.
    void watch(std::function<void()> changed) override;

    /// Whether the outbox could be read now, whatever it holds; for a relay that waits.
    void check(completion<void> done);

    /// A few steps in an index, and a look at the server's locks.
    void look(completion<outbox_look> done);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
