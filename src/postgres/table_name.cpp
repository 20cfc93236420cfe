#include "table_name.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

std::string doubled(std::string_view text, char quote) {
    std::string out(1, quote);
    for (const char c : text) {
        if (c == quote) out += quote;
        out += c;
    }
    return out += quote;
}

/// Takes one part of a name off the front; `nullopt` when there is none.
std::optional<std::string> take_part(std::string_view& rest) {
    std::string part;
    if (!rest.starts_with('"')) {
        while (!rest.empty() && rest.front() != '.' && rest.front() != '"') {
            const char c = rest.front();
            part += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
            rest.remove_prefix(1);
        }
        return part.empty() ? std::nullopt : std::optional(part);
    }
    rest.remove_prefix(1);
    for (;;) {
        const auto end = rest.find('"');
        if (end == std::string_view::npos) return std::nullopt;
        part += rest.substr(0, end);
        rest.remove_prefix(end + 1);
        if (!rest.starts_with('"')) return part.empty() ? std::nullopt : std::optional(part);
        part += '"';
        rest.remove_prefix(1);
    }
}

}  // namespace

std::string quote_identifier(std::string_view name) {
    return doubled(name, '"');
}

std::string quote_literal(std::string_view text) {
    // A backslash is only special where standard_conforming_strings is off; the E form means the same under
    // both.
    if (text.find('\\') == std::string_view::npos) return doubled(text, '\'');
    std::string escaped;
    for (const char c : text)
        escaped.append(c == '\\' ? 2 : 1, c);
    return "E" + doubled(escaped, '\'');
}

std::string table_name::quoted() const {
    return schema.empty() ? quote_identifier(table)
                          : quote_identifier(schema) + "." + quote_identifier(table);
}

std::string table_name::shown() const {
    return schema.empty() ? table : schema + "." + table;
}

result<table_name> parse_table_name(std::string_view given) {
    // More would be cut by the server, silently.
    constexpr std::size_t part_bytes_max = 63;
    const auto wrong = [&](std::string_view why) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "\"{}\" is not the name of a table: {}; write table or schema.table, with double quotes "
                "around a part that has dots, quotes or capital letters",
                given,
                why
            )
        );
    };
    if (given.find('\0') != std::string_view::npos) return wrong("it has a zero byte");
    auto rest = given;
    table_name name;
    auto part = take_part(rest);
    if (part && rest.starts_with('.')) {
        rest.remove_prefix(1);
        name.schema = std::move(*part);
        part = take_part(rest);
    }
    if (!part) return wrong("a part is empty, or a quote is missing");
    if (!rest.empty())
        return wrong(rest.starts_with('.') ? "it has more than two parts" : "a quote is out of place");
    name.table = std::move(*part);
    if (name.schema.size() > part_bytes_max || name.table.size() > part_bytes_max) {
        return wrong("a part is longer than 63 bytes");
    }
    return name;
}

}  // namespace millrace::postgres
