#include "postgres_error.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

struct verdict {
    std::string_view state;  ///< A SQLSTATE, or the class in its first two characters.
    errc code;
    retry_advice retry;
    std::string_view advice;
    bool quotes_values{false};  ///< The server's message may show what was to be stored.
};

constexpr auto never = retry_advice::never;
constexpr auto later = retry_advice::after_delay;

// What an administrator can mend is tried again: nothing that runs ends because a table or right is missing.
constexpr std::array verdicts{
    verdict{
        "40001", errc::unavailable, retry_advice::now, "another transaction was faster; it is tried again"},
    verdict{
        "40P01",
        errc::unavailable,
        retry_advice::now,
        "two transactions waited for each other; it is tried again"},
    verdict{"40003", errc::unavailable, later, "its outcome is unknown"},
    verdict{"40", errc::unavailable, retry_advice::now, "the transaction was undone; it is tried again"},
    verdict{
        "42P01",
        errc::not_found,
        later,
        "create the table, or check the name, the schema and the search_path"},
    verdict{"3F000", errc::not_found, later, "create the schema, or check its name"},
    verdict{"3D000", errc::not_found, later, "create the database, or check its name"},
    verdict{"42703", errc::not_found, later, "the table lacks a column: it is of another program or version"},
    verdict{"42883", errc::not_found, later, "the server lacks a function: PostgreSQL 12 or newer is needed"},
    verdict{
        "42501",
        errc::permission_denied,
        later,
        "grant this role the right, or use the relay's role; `millrace outbox init --print --outbox URL "
        "--relay-role ROLE` prints all that a relay and the `outbox` commands but `put` need"},
    verdict{
        "28", errc::permission_denied, later, "check the user, the password and the server's pg_hba.conf"},
    verdict{
        "25006",
        errc::unavailable,
        later,
        "the server is a standby or read-only; name the primary, or promote it"},
    verdict{"25P03", errc::unavailable, later, "this process was paused within a transaction"},
    verdict{
        "55P03", errc::unavailable, later, "another transaction holds it locked; end or shorten that one"},
    verdict{
        "57014",
        errc::unavailable,
        later,
        "it took longer than its limit, or an administrator cancelled it; the server is overloaded or a "
        "transaction holds a lock"},
    verdict{"57P03", errc::unavailable, later, "the server is starting, stopping or recovering"},
    verdict{"57P04", errc::not_found, later, "the database was dropped"},
    verdict{"57", errc::unavailable, later, "the server ended the connection; it may be restarting"},
    verdict{"53100", errc::out_of_space, later, "the server's disk is full; make room"},
    verdict{"53300", errc::unavailable, later, "raise max_connections, or use a pooler"},
    verdict{"53", errc::unavailable, later, "the server lacks a resource"},
    verdict{"58", errc::unavailable, later, "the server's disk or file system failed; check its log"},
    verdict{"08", errc::unavailable, later, "the connection was lost"},
    verdict{"0A", errc::unavailable, later, "the server, or a pooler before it, cannot do this"},
    verdict{"22", errc::invalid_argument, never, "a value does not fit its column", true},
    verdict{"23", errc::conflict, never, "a rule of the table forbids it"},
    verdict{"XX001", errc::corrupt, later, "the server's data is damaged; restore it from a backup"},
    verdict{"XX002", errc::corrupt, later, "an index of the server is damaged; rebuild it"},
};

verdict judge(std::string_view state) {
    const auto* const exact =
        std::find_if(verdicts.begin(), verdicts.end(), [&](const verdict& v) { return v.state == state; });
    if (exact != verdicts.end()) return *exact;
    const auto* const of_class = std::find_if(verdicts.begin(), verdicts.end(), [&](const verdict& v) {
        return v.state == state.substr(0, 2);
    });
    if (of_class != verdicts.end()) return *of_class;
    return {{}, errc::internal, later, "please report this"};
}

/// The first line, of a bounded length.
std::string_view line_of(std::string_view text) {
    constexpr std::size_t bytes_max = 300;
    text = text.substr(0, text.find('\n'));
    if (text.size() <= bytes_max) return text;
    text = text.substr(0, bytes_max);
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80)
        text.remove_suffix(1);
    return text.substr(
        0, text.size() - (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xc0 ? 1 : 0)
    );
}

bool is_state(std::string_view text) {
    return text.size() == 5 && std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
           });
}

struct refusal {
    std::string_view state;    ///< Empty when it was no server that refused.
    std::string_view message;  ///< Behind the SQLSTATE.
};

/// The last "FATAL:  28P01: password ..." in libpq's verbose text.
refusal last_refusal(std::string_view text) {
    refusal found;
    for (auto at = text.find(":  "); at != std::string_view::npos; at = text.find(":  ", at + 1)) {
        const auto state = text.substr(at + 3, 5);
        if (is_state(state) && text.substr(at + 8).starts_with(": ")) found = {state, text.substr(at + 10)};
    }
    return found;
}

/// Without the lines that only help who reads the server's source.
std::string_view last_line(std::string_view text) {
    for (;;) {
        while (text.ends_with('\n'))
            text.remove_suffix(1);
        const auto begin = text.rfind('\n') + 1;  // 0 when there is none
        const auto line = text.substr(begin);
        if (begin == 0 || (!line.starts_with("LOCATION:") && !line.starts_with('\t'))) return line;
        text = text.substr(0, begin);
    }
}

}  // namespace

error make_error(
    std::string_view sqlstate, std::string_view message, std::string_view name, std::string_view doing
) {
    const auto found = judge(sqlstate);
    const auto shown =
        found.quotes_values ? std::string_view("the server refused a value") : line_of(message);
    return {
        found.code,
        found.retry,
        sqlstate == "40003",
        fmt::format("cannot {} {}: {} (SQLSTATE {}); {}", doing, name, shown, sqlstate, found.advice)};
}

error connect_error(std::string_view text, std::string_view name) {
    const auto refused = last_refusal(text);
    if (!refused.state.empty()) return make_error(refused.state, refused.message, name, "connect to");
    return {
        errc::unavailable,
        later,
        false,
        fmt::format(
            "cannot connect to {}: {}; check that the server runs and the address is right",
            name,
            line_of(last_line(text))
        )};
}

}  // namespace millrace::postgres
