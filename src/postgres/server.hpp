/// Which PostgreSQL to connect to, and how messages name it.
///
/// Pure functions on plain data; nothing is opened.
#pragma once

#include "table_name.hpp"

#include <millrace/error.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::postgres {

struct server {
    /// The address without password and without parameters: what messages show.
    std::string name;

    /// libpq's keywords as given by the user, and ours where the user gave none. Holds the password.
    std::vector<std::pair<std::string, std::string>> parameters;

    std::optional<table_name> table;    ///< Of `?table=`, which is ours and not libpq's.
    std::optional<std::string> schema;  ///< Of `?schema=`, likewise.

    [[nodiscard]] const std::string* find(std::string_view keyword) const;
};

/// Takes a `postgresql://` or `postgres://` URL, or libpq's `keyword=value` text, with all that libpq knows:
/// several hosts, target_session_attrs, TLS, service, passfile. Where the user gave none: an application
/// name, a time-out for connecting and TCP keep-alives that notice a dead server within about 15 s.
/// `invalid_argument` never shows a password.
[[nodiscard]] result<server> parse_server(std::string_view given);

}  // namespace millrace::postgres
