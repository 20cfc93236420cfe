#include "postgres_lease_store.hpp"

#include "assert.hpp"
#include "catalog.hpp"
#include "lease_layout.hpp"
#include "pg_thread.hpp"
#include "postgres_lease_rows.hpp"

#include <utility>

namespace millrace {

using postgres::connection;
using postgres::lease_rows;
using postgres::stop_signal;

namespace {

postgres::limits limits_of(const postgres_lease_store_options& options) {
    return {
        .statement = options.request_timeout,
        .lock = options.request_timeout,
        .idle_in_transaction = options.request_timeout,
        .reply = options.request_timeout * 2,
        .commit = postgres::durability::durable};
}

}  // namespace

struct postgres_lease_store::impl {
    impl(host& home, postgres_lease_store_options given)
        : options(std::move(given)), thread(home, [this](const stop_signal& stop) { return open(stop); }) {}

    result<connection> open(const stop_signal& stop);

    /// The tables may be dropped, and the outbox with them be made anew, under an open connection: a new one
    /// looks again.
    template <class T>
    void run(std::function<result<T>(connection&, const lease_rows&)> what, completion<T> done) {
        thread.run<T>(
            [this, what = std::move(what)](connection& db) {
                auto outcome = what(db, *rows);
                if (!outcome && outcome.error().code == errc::not_found) db.close();
                return outcome;
            },
            std::move(done)
        );
    }

    postgres_lease_store_options options;
    std::optional<lease_rows> rows;  // the thread's
    postgres::pg_thread thread;
};

result<connection> postgres_lease_store::impl::open(const stop_signal& stop) {
    auto db = connection::open(options.where, stop, limits_of(options));
    if (!db) return db;
    auto schema = options.where.schema.value_or(schema_default);
    auto group = options.group;
    if (options.outbox) {
        auto found = find_table(*db, *options.outbox, "create it with `millrace outbox init`");
        if (!found) return tl::unexpected(std::move(found.error()));
        group = {"", postgres::outbox_lease_group(found->name)};
        schema = std::move(found->name.schema);
    }
    // With an outbox that is made anew, its lease is.
    const bool were_used = rows && !options.outbox;
    if (auto ready = ensure_lease_tables(*db, schema, were_used); !ready)
        return tl::unexpected(std::move(ready.error()));
    rows.emplace(schema, std::move(group));
    return db;
}

postgres_lease_store::postgres_lease_store(host& home, postgres_lease_store_options options)
    : impl_(std::make_unique<impl>(home, std::move(options))) {}

postgres_lease_store::~postgres_lease_store() = default;

void postgres_lease_store::list_workers(completion<std::vector<worker_row>> done) {
    impl_->run<std::vector<worker_row>>(
        [](connection& db, const lease_rows& rows) { return rows.list_workers(db); }, std::move(done)
    );
}

void postgres_lease_store::list_shards(completion<std::vector<shard_row>> done) {
    impl_->run<std::vector<shard_row>>(
        [](connection& db, const lease_rows& rows) { return rows.list_shards(db); }, std::move(done)
    );
}

void postgres_lease_store::read(lease_key key, completion<std::optional<lease_row>> done) {
    impl_->run<std::optional<lease_row>>(
        [key = std::move(key)](connection& db, const lease_rows& rows) { return rows.read(db, key); },
        std::move(done)
    );
}

void postgres_lease_store::write(lease_row row, std::optional<version> expected, completion<void> done) {
    if (expected) MILLRACE_ASSERT(version_of(row).value() == expected->value() + 1);
    impl_->run<void>(
        [row = std::move(row), expected](connection& db, const lease_rows& rows) {
            return rows.write(db, row, expected);
        },
        std::move(done)
    );
}

void postgres_lease_store::remove(lease_key key, version expected, completion<void> done) {
    impl_->run<void>(
        [key = std::move(key), expected](connection& db, const lease_rows& rows) {
            return rows.remove(db, key, expected);
        },
        std::move(done)
    );
}

result<std::vector<std::string>> postgres_groups(const postgres::server& where, const std::string& stream) {
    const stop_signal never;
    auto db = connection::open(where, never);
    if (!db) return tl::unexpected(std::move(db.error()));
    return postgres::list_groups(*db, where.schema.value_or(postgres_lease_store::schema_default), stream);
}

}  // namespace millrace
