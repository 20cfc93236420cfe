#include "support/sql_connection.hpp"

#include <libpq-fe.h>

namespace millrace::support {

namespace {

struct result_closer {
    void operator()(PGresult* result) const noexcept { ::PQclear(result); }
};
using result_ptr = std::unique_ptr<PGresult, result_closer>;

void check(PGconn* connection, const PGresult* result) {
    const auto status = ::PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY) return;
    const char* state = ::PQresultErrorField(result, PG_DIAG_SQLSTATE);
    throw sql_error(::PQerrorMessage(connection), state == nullptr ? "" : state);
}

}  // namespace

void sql_connection::closer::operator()(pg_conn* connection) const noexcept {
    ::PQfinish(connection);
}

sql_connection::sql_connection(const std::string& url) : connection_(::PQconnectdb(url.c_str())) {
    if (::PQstatus(handle()) != CONNECTION_OK) throw sql_error(::PQerrorMessage(handle()), "");
    ::PQsetNoticeReceiver(
        handle(), [](void*, const PGresult*) {}, nullptr
    );
}

std::vector<sql_connection::row> sql_connection::query(
    const std::string& sql, const std::vector<cell>& parameters
) {
    std::vector<const char*> values;
    values.reserve(parameters.size());
    for (const auto& parameter : parameters)
        values.push_back(parameter ? parameter->c_str() : nullptr);
    const result_ptr result{::PQexecParams(
        handle(), sql.c_str(), static_cast<int>(values.size()), nullptr, values.data(), nullptr, nullptr, 0
    )};
    check(handle(), result.get());

    std::vector<row> rows(static_cast<std::size_t>(::PQntuples(result.get())));
    for (int i = 0; i < ::PQntuples(result.get()); ++i) {
        for (int j = 0; j < ::PQnfields(result.get()); ++j) {
            auto& cells = rows[static_cast<std::size_t>(i)];
            if (::PQgetisnull(result.get(), i, j) != 0) {
                cells.emplace_back();
                continue;
            }
            const auto length = static_cast<std::size_t>(::PQgetlength(result.get(), i, j));
            cells.emplace_back(std::in_place, ::PQgetvalue(result.get(), i, j), length);
        }
    }
    return rows;
}

void sql_connection::execute(const std::string& sql) {
    const result_ptr result{::PQexec(handle(), sql.c_str())};
    check(handle(), result.get());
}

std::string sql_connection::value(const std::string& sql, const std::vector<cell>& parameters) {
    const auto rows = query(sql, parameters);
    if (rows.empty() || rows.front().empty() || !rows.front().front())
        throw sql_error("no value from: " + sql, "");
    return *rows.front().front();
}

int sql_connection::backend() const {
    return ::PQbackendPID(handle());
}

}  // namespace millrace::support
