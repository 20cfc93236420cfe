/// How an outbox in PostgreSQL is laid out: Millrace's own table, or goharvest's, served as it is.
///
/// Found in the catalog; plain data afterwards. Functions run on the caller's connection.
#pragma once

#include "connection.hpp"
#include "rows.hpp"
#include "statement.hpp"
#include "table_name.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::postgres {

/// A column by its name and type. Whatever is neither bytes nor text is read as its text.
struct outbox_column {
    std::string name;       ///< Quoted.
    std::int64_t type{0};   ///< Its object id.
    std::string type_name;  ///< As SQL writes it.
    bool plain{false};      ///< Never compressed in the table.

    /// The database keeps text as bytes of no encoding, which the server gives nobody as UTF-8: one row would
    /// fail all.
    bool raw{false};

    /// As the relay reads it: an expression over the row `o`, of bytes or text.
    [[nodiscard]] std::string read() const;

    /// Of an array, at least the bytes of its elements: what it takes in the table may be compressed.
    [[nodiscard]] std::string array_bytes() const;

    /// As bytea: in UTF-8, or as it is where it is raw.
    [[nodiscard]] std::string as_bytes() const;

    /// The inverse: from a bytea expression to this column's type.
    [[nodiscard]] std::string from_bytes(const std::string& expression) const;

    [[nodiscard]] bool is_bytes() const noexcept;  ///< Or an array of them.
    [[nodiscard]] bool is_text() const noexcept;   ///< text or varchar.
    [[nodiscard]] bool is_time() const noexcept;
};

struct outbox_layout {
    enum class kind : std::uint8_t { native, goharvest };

    table_name table;
    kind of{kind::native};
    std::int64_t oid{0};
    std::int64_t database{0};  ///< Object id, as in pg_locks.
    std::int64_t sequence{0};  ///< Object id of what gives the ids; 0 when there is none.
    bool partitioned{false};

    outbox_column topic;
    outbox_column key;
    outbox_column value;
    std::optional<outbox_column> names;
    std::optional<outbox_column> values;
    std::optional<outbox_column> partition;
    std::optional<outbox_column> timestamp;
    std::optional<outbox_column> created;

    /// -1 in goharvest's tables means none.
    [[nodiscard]] std::string read_partition() const;

    /// As the relay knows it: NULL for one that makes the row malformed.
    [[nodiscard]] std::string sent_partition() const;
};

/// What the catalog says of the table of that name, which must live as long as the statement.
[[nodiscard]] statement layout_query(const std::string& quoted);

/// Its reply. `not_found` when there is no such table, `invalid_config` when it is no outbox: both may be
/// mended while a relay waits.
[[nodiscard]] result<outbox_layout> layout_from(
    const rows& found, const table_name& given, std::string_view server
);

/// Both, on a connection.
[[nodiscard]] result<outbox_layout> find_layout(connection& db, const table_name& given);

}  // namespace millrace::postgres
