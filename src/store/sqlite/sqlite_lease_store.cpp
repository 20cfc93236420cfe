#include "sqlite_lease_store.hpp"

#include "assert.hpp"
#include "db_thread.hpp"
#include "lease_tables.hpp"

#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr const char* state_is_gone =
    "the state that this process has used is gone: put the file back, or mount its disk; to begin anew "
    "instead, stop all workers of the group first";

/// What was there once is not made again: the group would skip, or do again, what it had not, or had, done.
result<sqlite::database> open(const sqlite_lease_store_options& options, bool used) {
    using sqlite::open_mode;
    const bool gone = used && options.create_file;
    const auto write = options.create_file && !gone ? open_mode::create : open_mode::must_exist;
    auto db = sqlite::database::open(
        options.path,
        {.mode = options.only_reads ? open_mode::to_read : write,
         .busy_timeout = options.busy_timeout,
         .sync = sqlite::durability::full,
         .name = options.name,
         .when_missing = gone ? state_is_gone : options.when_missing}
    );
    if (!db) return db;
    if (gone) {
        if (const auto there = lease_tables::check(*db); !there) {
            auto why = there.error();
            if (why.code == errc::not_found)
                why.detail = fmt::format("{} holds no leases any more; {}", db->name(), state_is_gone);
            return tl::unexpected(std::move(why));
        }
        return db;
    }
    const auto ready = options.only_reads ? lease_tables::check(*db) : lease_tables::ensure(*db);
    if (!ready) return tl::unexpected(ready.error());
    return db;
}

}  // namespace

struct sqlite_lease_store::impl {
    impl(host& home, const sqlite_lease_store_options& options)
        : group(options.group), thread(home, [this, options] {
              auto db = open(options, used);
              used = used || db;
              return db;
          }) {}

    group_key group;
    bool used{false};  // the thread's
    sqlite::db_thread thread;
};

sqlite_lease_store::sqlite_lease_store(host& home, sqlite_lease_store_options options)
    : impl_(std::make_unique<impl>(home, options)) {}

sqlite_lease_store::~sqlite_lease_store() = default;

void sqlite_lease_store::list_workers(completion<std::vector<worker_row>> done) {
    impl_->thread.run<std::vector<worker_row>>(
        [group = impl_->group](sqlite::database& db) { return lease_tables::list_workers(db, group); },
        std::move(done)
    );
}

void sqlite_lease_store::list_shards(completion<std::vector<shard_row>> done) {
    impl_->thread.run<std::vector<shard_row>>(
        [group = impl_->group](sqlite::database& db) { return lease_tables::list_shards(db, group); },
        std::move(done)
    );
}

void sqlite_lease_store::read(lease_key key, completion<std::optional<lease_row>> done) {
    impl_->thread.run<std::optional<lease_row>>(
        [group = impl_->group, key = std::move(key)](sqlite::database& db) {
            return lease_tables::read(db, group, key);
        },
        std::move(done)
    );
}

void sqlite_lease_store::write(lease_row row, std::optional<version> expected, completion<void> done) {
    if (expected) MILLRACE_ASSERT(version_of(row).value() == expected->value() + 1);
    impl_->thread.run_write(
        [group = impl_->group, row = std::move(row), expected](sqlite::database& db) {
            return lease_tables::write(db, group, row, expected);
        },
        std::move(done)
    );
}

void sqlite_lease_store::remove(lease_key key, version expected, completion<void> done) {
    impl_->thread.run_write(
        [group = impl_->group, key = std::move(key), expected](sqlite::database& db) {
            return lease_tables::remove(db, group, key, expected);
        },
        std::move(done)
    );
}

}  // namespace millrace
