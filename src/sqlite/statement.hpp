/// A prepared statement in use: bound, stepped, read, and reset when it goes out of scope.
///
/// Not thread-safe; lives on the thread of its database and must not outlive it.
#pragma once

#include <millrace/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

struct sqlite3;
struct sqlite3_stmt;

namespace millrace::sqlite {

/// Bytes for a BLOB; a plain `string_view` is bound as TEXT.
struct blob_view {
    std::string_view bytes;
};

enum class value_type : std::uint8_t { integer, real, text, blob, null };

class database;

class statement {
public:
    statement(statement&& other) noexcept;
    statement& operator=(statement&&) = delete;
    statement(const statement&) = delete;
    statement& operator=(const statement&) = delete;
    ~statement();

    /// Parameters are numbered from 1. Bytes are not copied: they must live until the next `reset`, or until
    /// the statement goes. What cannot be bound (too large) is reported by the next `step`.
    void bind(int parameter, std::int64_t value);
    void bind(int parameter, std::string_view text);
    void bind(int parameter, blob_view bytes);
    void bind(int parameter, std::nullopt_t);
    void bind(int parameter, const char* text) { bind(parameter, std::string_view(text)); }
    void bind(int parameter, const std::string& text) { bind(parameter, std::string_view(text)); }

    template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, std::int64_t>) void bind(int parameter, T value) {
        bind(parameter, static_cast<std::int64_t>(value));
    }
    template <class T>
    void bind(int parameter, const std::optional<T>& value) {
        if (value) {
            bind(parameter, *value);
        } else {
            bind(parameter, std::nullopt);
        }
    }

    /// Binds all parameters in order.
    template <class... Ts>
    statement& with(const Ts&... values) {
        int at = 0;
        (bind(++at, values), ...);
        return *this;
    }

    /// True: a row stands in the columns; false: done.
    [[nodiscard]] result<bool> step();

    /// Steps to the end, dropping rows.
    result<void> run();

    /// Ready to be bound and stepped anew; the old bindings are kept until bound over.
    void reset();

    /// Columns are numbered from 0. Views live until the next `step` or `reset`.
    [[nodiscard]] value_type type(int column) const;
    [[nodiscard]] bool is_null(int column) const { return type(column) == value_type::null; }
    [[nodiscard]] std::int64_t integer(int column) const;

    /// The bytes of a text or blob; numbers as decimal text; empty for NULL.
    [[nodiscard]] std::string_view bytes(int column) const;
    [[nodiscard]] std::string text(int column) const { return std::string(bytes(column)); }
    [[nodiscard]] std::optional<std::string_view> maybe_bytes(int column) const;
    [[nodiscard]] std::optional<std::int64_t> maybe_integer(int column) const;

private:
    friend class database;
    statement(sqlite3_stmt* handle, const std::string* file) : handle_(handle), file_(file) {}

    void note(int code);

    sqlite3_stmt* handle_;
    const std::string* file_;  // owned by the database
    int bind_error_{0};
};

}  // namespace millrace::sqlite
