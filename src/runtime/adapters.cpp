#include "adapters.hpp"

#include "database.hpp"
#include "dead_letters.hpp"
#include "dynamodb_adapters.hpp"
#include "kafka_adapters.hpp"
#ifdef MILLRACE_WITH_AWS
#include "kinesis_adapters.hpp"
#endif
#include "lease_tables.hpp"
#include "local_sink.hpp"
#include "local_source.hpp"
#include "local_stream_admin.hpp"
#include "memory_lease_store.hpp"
#include "outbox_schema.hpp"
#include "postgres_adapters.hpp"
#include "sqlite_lease_store.hpp"
#include "sqlite_outbox.hpp"
#include "sqlite_outbox_admin.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

/// Groups in memory live as long as anybody in this process uses them.
std::shared_ptr<memory_lease_table> memory_table(const std::string& state, const group_key& group) {
    static std::mutex mutex;
    static std::map<std::pair<std::string, group_key>, std::weak_ptr<memory_lease_table>> tables;
    const std::lock_guard lock(mutex);
    auto& known = tables[{state, group}];
    auto table = known.lock();
    if (!table) known = table = std::make_shared<memory_lease_table>();
    return table;
}

std::unique_ptr<lease_store> sqlite_store(
    const url& where, const group_key& group, host& home, const store_use& how
) {
    const bool own_file = where.role == url_role::state;
    return std::make_unique<sqlite_lease_store>(
        home,
        sqlite_lease_store_options{
            .path = where.path,
            .group = group,
            .name = where.given,
            .create_file = own_file,
            .only_reads = how.use == file_use::read,
            .when_missing = own_file ? "" : "make it with \"millrace outbox init\"",
            .busy_timeout = how.busy_timeout}
    );
}

/// `parse_url` lets no scheme through that is not opened here; this is for a
/// line that was forgotten.
tl::unexpected<error> unopened(const url& where) {
    return fail(
        errc::internal, fmt::format("URL \"{}\" is known but nothing opens it; please report it", where.given)
    );
}

}  // namespace

store_use used_under(nanoseconds lease) {
    store_use how{.lease = lease};
    how.busy_timeout = std::min(how.busy_timeout, std::chrono::floor<milliseconds>(lease / 5));
    return how;
}

result<std::unique_ptr<lease_store>> open_lease_store(
    const url& where, const group_key& group, host& home, store_use how
) {
#ifdef MILLRACE_WITH_POSTGRES
    if (where.scheme == "postgresql")
        return postgres_adapters::open_lease_store(where, group, home, how.lease);
#endif
#ifdef MILLRACE_WITH_AWS
    if (where.scheme == "dynamodb") return dynamodb_adapters::open_lease_store(where, group, home, how.lease);
#endif
    if (where.scheme == "sqlite") return sqlite_store(where, group, home, how);
    if (where.scheme == "memory") {
        return std::make_unique<memory_lease_store>(home, memory_table(where.path, group));
    }
    return unopened(where);
}

result<std::vector<std::string>> known_groups(const url& state, const std::string& stream) {
#ifdef MILLRACE_WITH_POSTGRES
    if (state.scheme == "postgresql") return postgres_adapters::known_groups(state, stream);
#endif
#ifdef MILLRACE_WITH_AWS
    if (state.scheme == "dynamodb") return dynamodb_adapters::known_groups(state, stream);
#endif
    if (state.scheme == "memory") return std::vector<std::string>{};
    if (state.scheme != "sqlite") return unopened(state);
    auto db = sqlite::database::open(state.path, {.mode = sqlite::open_mode::read_only, .name = state.given});
    if (!db) return tl::unexpected(std::move(db.error()));
    return lease_tables::list_groups(*db, stream);
}

result<std::vector<kept_row>> kept_positions(const url& where, kept_by whom, const std::string& under) {
#ifdef MILLRACE_WITH_POSTGRES
    if (where.scheme == "postgresql") return postgres_adapters::kept_positions(where, whom, under);
#endif
#ifdef MILLRACE_WITH_AWS
    if (where.scheme == "dynamodb") return dynamodb_adapters::kept_positions(where, whom, under);
#endif
    return unopened(where);
}

result<std::string> checkpoint_schema(const url& state) {
#ifdef MILLRACE_WITH_POSTGRES
    if (state.scheme == "postgresql") return postgres_adapters::checkpoint_schema(state);
#endif
    return fail(
        errc::invalid_config,
        fmt::format(
            "handlers cannot write their checkpoints in the state \"{}\"; keep it in postgresql://…, in the "
            "database of the effects, or let the runtime write them",
            state.given
        )
    );
}

result<opened_outbox> open_outbox(const url& where, host& home, [[maybe_unused]] nanoseconds lease) {
#ifdef MILLRACE_WITH_POSTGRES
    if (where.scheme == "postgresql") return postgres_adapters::open_outbox(where, home, lease);
#endif
    if (where.scheme != "sqlite") return unopened(where);
    auto made =
        std::make_unique<sqlite_outbox>(home, sqlite_outbox_options{.path = where.path, .name = where.given});
    auto* const outbox = made.get();
    return opened_outbox{
        std::move(made),
        [outbox](completion<outbox_look> done) { outbox->look(std::move(done)); },
        [outbox](completion<void> done) { outbox->check(std::move(done)); }};
}

result<std::unique_ptr<outbox_admin>> open_outbox_admin(const url& where, milliseconds wait, file_use use) {
#ifdef MILLRACE_WITH_POSTGRES
    if (where.scheme == "postgresql")
        return postgres_adapters::open_outbox_admin(where, wait, use == file_use::append);
#endif
    if (where.scheme != "sqlite") return unopened(where);
    return sqlite_outbox_admin::open(
               where.path, {.name = where.given, .busy_timeout = wait, .only_reads = use == file_use::read}
    )
        .map([](sqlite_outbox_admin opened) {
            return std::unique_ptr<outbox_admin>(std::make_unique<sqlite_outbox_admin>(std::move(opened)));
        });
}

result<void> init_outbox(const url& where, milliseconds wait) {
#ifdef MILLRACE_WITH_POSTGRES
    if (where.scheme == "postgresql") return postgres_adapters::init_outbox(where, wait);
#endif
    if (where.scheme != "sqlite") return unopened(where);
    return sqlite_outbox_admin::init(where.path, {.name = where.given, .busy_timeout = wait})
        .map([](const sqlite_outbox_admin&) {});
}

result<std::string> outbox_script(const url& where, [[maybe_unused]] const outbox_roles& roles) {
#ifdef MILLRACE_WITH_POSTGRES
    if (where.scheme == "postgresql") return postgres_adapters::outbox_script(where, roles);
#endif
    if (where.scheme != "sqlite") return unopened(where);
    return std::string(outbox_schema::script());
}

result<opened_sink> open_sink(const url& where, host& home, const sink_options& options) {
#ifdef MILLRACE_WITH_KAFKA
    if (where.scheme == "kafka") return kafka_adapters::open_sink(where, home, options);
#endif
#ifdef MILLRACE_WITH_AWS
    if (where.scheme == "kinesis") return kinesis_adapters::open_sink(where, home, options);
#endif
    if (where.scheme != "local") return unopened(where);
    auto made = std::make_unique<local_sink>(home, where.path, local_sink_options{.outbox = options.outbox});
    auto* const sink = made.get();
    return opened_sink{std::move(made), [sink](completion<void> done) { sink->look(std::move(done)); }};
}

result<std::unique_ptr<group_leader>> open_group_leader(
    const leadership_options& options, const worker_id& worker, const url& sink, host& home
) {
#ifdef MILLRACE_WITH_KAFKA
    return kafka_adapters::open_group_leader(options, worker, sink, home);
#else
    static_cast<void>(worker), static_cast<void>(sink), static_cast<void>(home);
    return fail(
        errc::invalid_config,
        fmt::format("leader group \"{}\" needs a build of millrace with Kafka", options.group)
    );
#endif
}

result<std::unique_ptr<record_source>> open_source(const url& where, host& home) {
#ifdef MILLRACE_WITH_AWS
    if (where.scheme == "kinesis") return kinesis_adapters::open_source(where, home);
#endif
    if (where.scheme == "local") return std::make_unique<local_source>(home, where.path, where.stream);
    return unopened(where);
}

result<std::unique_ptr<stream_admin>> open_stream_admin(const url& where, milliseconds wait, file_use use) {
#ifdef MILLRACE_WITH_AWS
    if (where.scheme == "kinesis") return kinesis_adapters::open_stream_admin(where, wait);
#endif
    if (where.scheme != "local") return unopened(where);
    const local_admin_options options{.busy_timeout = wait, .only_reads = use == file_use::read};
    auto opened = use == file_use::create ? local_admin::open_or_create(where.path, options)
                                          : local_admin::open(where.path, options);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    return std::make_unique<local_stream_admin>(std::move(*opened), where.stream);
}

result<opened_dead_letters> open_dead_letters(const url& where, const std::string& origin, host& home) {
#ifdef MILLRACE_WITH_KAFKA
    if (where.scheme == "kafka") return kafka_adapters::open_dead_letters(where, origin, home);
#endif
#ifdef MILLRACE_WITH_POSTGRES
    if (where.scheme == "postgresql") return postgres_adapters::open_dead_letters(where, origin, home);
#endif
#ifdef MILLRACE_WITH_AWS
    if (where.scheme == "kinesis") return kinesis_adapters::open_dead_letters(where, origin, home);
#endif
    if (where.scheme == "sqlite") {
        auto made = std::make_unique<outbox_dead_letters>(home, where.path, where.given, origin);
        auto* const outbox = made.get();
        return opened_dead_letters{
            std::move(made), [outbox](completion<void> done) { outbox->look(std::move(done)); }};
    }
    if (where.scheme == "local") {
        auto to = std::make_unique<local_sink>(home, where.path);
        auto* const sink = to.get();
        return opened_dead_letters{
            std::make_unique<sink_dead_letters>(std::move(to), where.stream, origin),
            [sink, name = where.stream](completion<void> done) { sink->look(std::move(done), name); }};
    }
    return unopened(where);
}

}  // namespace millrace
