/// Names of tables as users write them, and as SQL wants them.
///
/// Pure functions.
#pragma once

#include <millrace/error.hpp>

#include <string>
#include <string_view>

namespace millrace::postgres {

/// In double quotes, so that any name is one identifier.
[[nodiscard]] std::string quote_identifier(std::string_view name);

/// In single quotes, for the few places of SQL that take no parameter.
[[nodiscard]] std::string quote_literal(std::string_view text);

struct table_name {
    std::string schema;  ///< Empty: the server looks along its search_path.
    std::string table;

    [[nodiscard]] std::string quoted() const;

    /// As users read it: without quotes.
    [[nodiscard]] std::string shown() const;

    bool operator==(const table_name&) const = default;
};

/// `table` or `schema.table`; as in SQL, a part in double quotes is taken as it is (`""` for a quote in it),
/// and the letters A to Z of any other are made small. `invalid_argument` says what is wrong.
[[nodiscard]] result<table_name> parse_table_name(std::string_view given);

}  // namespace millrace::postgres
