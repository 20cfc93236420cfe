#ifdef MILLRACE_WITH_POSTGRES

#include "postgres_adapters.hpp"

#include "connection.hpp"
#include "dead_letters.hpp"
#include "outbox_put.hpp"
#include "outbox_session.hpp"
#include "pg_thread.hpp"
#include "postgres_lease_rows.hpp"
#include "postgres_lease_store.hpp"
#include "postgres_outbox.hpp"
#include "postgres_outbox_admin.hpp"
#include "server.hpp"
#include "stop_signal.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace millrace::postgres_adapters {

namespace {

constexpr const char* table_default = "outbox";

postgres::table_name table_of(const postgres::server& where) {
    return where.table.value_or(postgres::table_name{"", table_default});
}

/// Adds records to an outbox under the name of the stream that they came from.
class postgres_dead_letters final : public dead_letter_sink {
public:
    postgres_dead_letters(host& home, postgres::server where, std::string origin)
        : origin_(std::move(origin)),
          session_(table_of(where), false),
          thread_(home, [where = std::move(where)](const postgres::stop_signal& stop) {
              return postgres::connection::open(where, stop, {.commit = postgres::durability::durable});
          }) {}

    void put(std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done)
        override {
        thread_.run<void>(
            [this, letter = dead_letter(*batch, index, why, origin_, origin_)](postgres::connection& db) {
                return add(db, std::span(&letter, 1));
            },
            std::move(done)
        );
    }

    /// Whether the outbox is there and usable.
    void look(completion<void> done) {
        thread_.run<void>([this](postgres::connection& db) { return add(db, {}); }, std::move(done));
    }

private:
    result<void> add(postgres::connection& db, std::span<const event> letters) {
        const auto known = session_.use(db);
        if (!known) return tl::unexpected(known.error());
        const auto put = postgres::put_events(db, (*known)->layout, letters);
        if (put) return {};
        session_.forget();
        return tl::unexpected(put.error());
    }

    std::string origin_;
    postgres::outbox_session session_;  // of the thread
    postgres::pg_thread thread_;
};

}  // namespace

result<std::unique_ptr<lease_store>> open_lease_store(
    const url& where, const group_key& group, host& home, nanoseconds lease
) {
    auto server = postgres::parse_server(where.path);
    if (!server) return tl::unexpected(std::move(server.error()));
    postgres_lease_store_options options{.where = std::move(*server), .group = group};
    options.request_timeout = std::min(options.request_timeout, postgres::limits_below(lease).lock);
    if (where.role == url_role::outbox) {
        options.outbox = table_of(options.where);
    }
    return std::make_unique<postgres_lease_store>(home, std::move(options));
}

result<std::vector<std::string>> known_groups(const url& state, const std::string& stream) {
    const auto server = postgres::parse_server(state.path);
    if (!server) return tl::unexpected(server.error());
    const postgres::stop_signal never;
    auto db = postgres::connection::open(*server, never);
    if (!db) return tl::unexpected(std::move(db.error()));
    return postgres::list_groups(*db, server->schema.value_or(postgres_lease_store::schema_default), stream);
}

result<std::vector<kept_row>> kept_positions(const url& where, kept_by whom, const std::string& under) {
    if (whom != kept_by::harlow)
        return fail(
            errc::invalid_argument, where.given + ": of the two, only harlow's keeps positions in PostgreSQL"
        );
    const auto server = postgres::parse_server(where.path);
    if (!server) return tl::unexpected(server.error());
    const postgres::stop_signal never;
    auto db = postgres::connection::open(*server, never);
    if (!db) return tl::unexpected(std::move(db.error()));
    return postgres::read_positions(*db, *server->table, under);
}

result<std::string> checkpoint_schema(const url& state) {
    return postgres::parse_server(state.path).map([](const postgres::server& server) {
        return server.schema.value_or(postgres_lease_store::schema_default);
    });
}

result<opened_outbox> open_outbox(const url& where, host& home, nanoseconds lease) {
    auto server = postgres::parse_server(where.path);
    if (!server) return tl::unexpected(std::move(server.error()));
    postgres_outbox_options options{.server = std::move(*server)};
    options.writing = postgres::limits_below(lease);
    auto made = std::make_unique<postgres_outbox>(home, std::move(options));
    auto* const outbox = made.get();
    return opened_outbox{
        std::move(made),
        [outbox](completion<outbox_look> done) { outbox->look(std::move(done)); },
        [outbox](completion<void> done) { outbox->check(std::move(done)); }};
}

result<std::unique_ptr<outbox_admin>> open_outbox_admin(const url& where, milliseconds wait, bool only_puts) {
    const auto server = postgres::parse_server(where.path);
    if (!server) return tl::unexpected(server.error());
    return postgres_outbox_admin::open(*server, wait, only_puts).map([](postgres_outbox_admin opened) {
        return std::unique_ptr<outbox_admin>(std::make_unique<postgres_outbox_admin>(std::move(opened)));
    });
}

result<void> init_outbox(const url& where, milliseconds wait) {
    const auto server = postgres::parse_server(where.path);
    if (!server) return tl::unexpected(server.error());
    return postgres_outbox_admin::init(*server, wait).map([](const postgres_outbox_admin&) {});
}

result<std::string> outbox_script(const url& where, const outbox_roles& roles) {
    return postgres::parse_server(where.path).and_then([&](const postgres::server& server) {
        return postgres_outbox_admin::script(server, roles.writer, roles.relay);
    });
}

result<opened_dead_letters> open_dead_letters(const url& where, const std::string& origin, host& home) {
    auto server = postgres::parse_server(where.path);
    if (!server) return tl::unexpected(std::move(server.error()));
    auto made = std::make_unique<postgres_dead_letters>(home, std::move(*server), origin);
    auto* const outbox = made.get();
    return opened_dead_letters{
        std::move(made), [outbox](completion<void> done) { outbox->look(std::move(done)); }};
}

}  // namespace millrace::postgres_adapters

#endif
