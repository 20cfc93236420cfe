/// What a connection knows of its outbox: layout and SQL, found once and again when the table changed.
///
/// One a connection's thread.
#pragma once

#include "connection.hpp"
#include "outbox_layout.hpp"
#include "outbox_sql.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <optional>

namespace millrace::postgres {

/// The state of a table by which ids keep their meaning.
struct table_state {
    std::int64_t oid{0};
    std::int64_t file{0};  ///< Of the table's storage, which TRUNCATE changes.
    std::int64_t sequence_file{0};
    std::string lasting;  ///< The same for every connection and over a restart of the server.

    bool operator==(const table_state&) const = default;
};

class outbox_session {
public:
    /// `table` as the user named it. `makes_tables`: the relay's own tables are made where they are missing.
    outbox_session(table_name table, bool makes_tables)
        : given_(std::move(table)), makes_tables_(makes_tables) {}

    struct known {
        explicit known(outbox_layout found) : layout(std::move(found)), sql(layout) {}
        outbox_layout layout;
        outbox_sql sql;
    };

    /// Looks when it must; valid until the next call.
    [[nodiscard]] result<const known*> use(connection& db);

    /// After an error, or when the table is another one.
    void forget() { known_.reset(); }

private:
    table_name given_;
    bool makes_tables_;
    std::uint64_t connection_{0};
    std::optional<known> known_;
};

/// Makes the relay's own tables, or says which SQL would. `wrong_version` when they are too new for this
/// program.
result<void> ensure_relay_tables(connection& db, const outbox_layout& layout);

}  // namespace millrace::postgres
