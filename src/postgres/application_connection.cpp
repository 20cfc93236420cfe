#include "application_connection.hpp"

#include "postgres_error.hpp"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <libpq-fe.h>

namespace millrace::postgres {

namespace {

result<rows> outcome_of(const PGconn* db, PGresult* got, std::string_view doing, bool writes) {
    rows reply(got);
    const auto status = PQresultStatus(got);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return reply;
    const auto field = [&](int which) {
        const char* text = PQresultErrorField(got, which);
        return text == nullptr ? std::string_view{} : std::string_view(text);
    };
    if (const auto state = field(PG_DIAG_SQLSTATE); !state.empty()) {
        return tl::unexpected(make_error(state, field(PG_DIAG_MESSAGE_PRIMARY), name_of(db), doing));
    }
    return fail(
        errc::unavailable,
        fmt::format("cannot {} {}: the connection was lost", doing, name_of(db)),
        retry_advice::after_delay,
        writes
    );
}

}  // namespace

std::string name_of(const PGconn* db) {
    const auto part = [](const char* text) { return text == nullptr ? std::string() : std::string(text); };
    return fmt::format("postgresql://{}:{}/{}", part(PQhost(db)), part(PQport(db)), part(PQdb(db)));
}

result<rows> run_on(PGconn* db, const statement& what) {
    std::vector<Oid> types;
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (std::size_t i = 0; i < what.parameters(); ++i) {
        const auto one = what.at(i);
        types.push_back(static_cast<Oid>(one.type));
        values.push_back(one.value ? one.value->data() : nullptr);
        lengths.push_back(static_cast<int>(one.value.value_or("").size()));
    }
    const std::vector<int> formats(types.size(), 1);
    PGresult* const got = PQexecParams(
        db,
        what.sql().c_str(),
        static_cast<int>(types.size()),
        types.data(),
        values.data(),
        lengths.data(),
        formats.data(),
        1
    );
    return outcome_of(db, got, what.doing(), what.writes());
}

result<rows> run_script(PGconn* db, const std::string& sql, std::string_view doing) {
    return outcome_of(db, PQexec(db, sql.c_str()), doing, true);
}

}  // namespace millrace::postgres
