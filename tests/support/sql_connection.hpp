/// SQL for tests: one connection to PostgreSQL, text in, text out, every failure thrown.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

struct pg_conn;

namespace millrace::support {

class sql_error : public std::runtime_error {
public:
    sql_error(const std::string& text, std::string state)
        : std::runtime_error(text), state_(std::move(state)) {}

    /// SQLSTATE; empty when the connection failed.
    [[nodiscard]] const std::string& state() const noexcept { return state_; }

private:
    std::string state_;
};

class sql_connection {
public:
    using cell = std::optional<std::string>;  ///< Empty: NULL.
    using row = std::vector<cell>;

    explicit sql_connection(const std::string& url);

    /// One statement; parameters are $1 and so on. A bytea is text in the form `\x6162`.
    std::vector<row> query(const std::string& sql, const std::vector<cell>& parameters = {});

    /// Any number of statements, one transaction unless they say otherwise.
    void execute(const std::string& sql);

    /// The first cell of the first row; throws when there is none or it is NULL.
    std::string value(const std::string& sql, const std::vector<cell>& parameters = {});

    /// As `value`, as a number.
    long long number(const std::string& sql, const std::vector<cell>& parameters = {}) {
        return std::stoll(value(sql, parameters));
    }

    /// The process id of the server's backend, for pg_terminate_backend.
    [[nodiscard]] int backend() const;
    [[nodiscard]] pg_conn* handle() const noexcept { return connection_.get(); }

private:
    struct closer {
        void operator()(pg_conn* connection) const noexcept;
    };
    std::unique_ptr<pg_conn, closer> connection_;
};

}  // namespace millrace::support
