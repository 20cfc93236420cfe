#include "server.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include <fmt/format.h>
#include <libpq-fe.h>

namespace millrace::postgres {

namespace {

struct free_options {
    void operator()(PQconninfoOption* o) const noexcept { PQconninfoFree(o); }
};
struct free_text {
    void operator()(char* text) const noexcept { PQfreemem(text); }
};

constexpr std::array<std::pair<const char*, const char*>, 6> defaults{{
    {"connect_timeout", "3"},       // seconds, for each host
    {"keepalives_idle", "5"},       // seconds, as the next
    {"keepalives_interval", "3"},   //
    {"keepalives_count", "3"},      //
    {"tcp_user_timeout", "10000"},  // milliseconds
    {"fallback_application_name", "millrace"},
}};

/// libpq's text without what it quotes from the address, which may be a part of a password.
std::string without_quotes_of(std::string_view text) {
    const auto quote = text.find('"');
    if (quote == std::string_view::npos) return std::string(text);
    const auto quoted = text.substr(quote + 1, text.rfind('"') - quote - 1);
    const bool keyword = !quoted.empty() && quoted.size() < 40 &&
                         quoted.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos;
    if (keyword && text.find(" query parameter: ") != std::string_view::npos) return std::string(text);
    if (keyword && text.starts_with("invalid connection option")) return std::string(text);
    auto shown = std::string(text.substr(0, quote));
    while (shown.ends_with(' ') || shown.ends_with(':'))
        shown.pop_back();
    return shown;
}

tl::unexpected<error> wrong(std::string_view why) {
    while (why.ends_with('\n'))
        why.remove_suffix(1);
    return fail(
        errc::invalid_argument,
        fmt::format(
            "the address of the PostgreSQL server is wrong: {}; write "
            "postgresql://USER@HOST:PORT/DATABASE?KEYWORD=VALUE with libpq's keywords, and as %XX what has a "
            "meaning in URLs",
            without_quotes_of(why)
        )
    );
}

std::optional<std::string> percent_decoded(std::string_view text) {
    const auto digit = [](char c) {
        constexpr std::string_view digits = "0123456789abcdef";
        return digits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
    };
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size()) return std::nullopt;
        const auto high = digit(text[i + 1]);
        const auto low = digit(text[i + 2]);
        if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

/// Where the query of a URL begins, behind its question mark. One in a password does not count, as in libpq.
std::size_t query_of(std::string_view url) {
    const auto authority = url.find("://") + 3;
    const auto at = url.find_first_of("@/", authority);
    const auto from = at != std::string_view::npos && url[at] == '@' ? at : authority;
    const auto mark = url.find('?', from);
    return mark == std::string_view::npos ? url.size() : mark + 1;
}

/// Moves the parameters that are ours out of the URL.
result<std::string> take_ours(std::string_view url, server& into) {
    auto begin = query_of(url);
    std::string kept(url.substr(0, begin));
    while (begin < url.size()) {
        const auto end = std::min(url.find('&', begin), url.size());
        const auto parameter = url.substr(begin, end - begin);
        begin = end + 1;
        const auto equals = std::min(parameter.find('='), parameter.size());
        const auto keyword = parameter.substr(0, equals);
        if (keyword != "table" && keyword != "schema") {
            if (!kept.ends_with('?')) kept += '&';
            kept += parameter;
            continue;
        }
        const auto value = percent_decoded(parameter.substr(std::min(equals + 1, parameter.size())));
        if (!value || value->empty())
            return wrong(fmt::format("the value of {} is empty or broken", keyword));
        if (keyword == "table") {
            auto name = parse_table_name(*value);
            if (!name) return tl::unexpected(std::move(name.error()));
            into.table = std::move(*name);
        } else {
            auto name = parse_table_name(*value);
            if (!name || !name->schema.empty()) return wrong("the value of schema is not one name");
            into.schema = std::move(name->table);
        }
    }
    if (kept.ends_with('?')) kept.pop_back();
    return kept;
}

std::vector<std::string_view> parts_of(std::string_view list) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto comma = list.find(',');
        parts.push_back(list.substr(0, comma));
        if (comma == std::string_view::npos) return parts;
        list.remove_prefix(comma + 1);
    }
}

/// An @ or a / that ends the user or the password early leaves its rest in the host or the database, which
/// messages show.
bool has_user_cut_short(std::string_view url) {
    const auto begin = url.find("://") + 3;
    const auto query = query_of(url);
    const auto servers = url.substr(begin, (query == url.size() ? query : query - 1) - begin);
    const auto at = servers.find_last_of('@');
    if (at == std::string_view::npos) return false;
    return servers.find_first_of("@/") != at;
}

/// A keyword of libpq that takes one of a few words, which it looks at only when it connects.
struct choice {
    std::string_view keyword;
    std::string_view words;  ///< Each with a space behind it.
};

constexpr std::array<choice, 6> choices{{
    {"sslmode", "disable allow prefer require verify-ca verify-full "},
    {"target_session_attrs", "any read-write read-only primary standby prefer-standby "},
    {"channel_binding", "disable prefer require "},
    {"gssencmode", "disable prefer require "},
    {"ssl_min_protocol_version", "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3 "},
    {"ssl_max_protocol_version", "TLSv1 TLSv1.1 TLSv1.2 TLSv1.3 "},
}};

constexpr std::array<std::string_view, 6> numbers{
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout"};

std::optional<int> whole_number(std::string_view text) {
    int number = 0;
    const auto* const last = text.data() + text.size();
    const auto [end, fault] = std::from_chars(text.data(), last, number);
    return fault == std::errc{} && end == last ? std::optional(number) : std::nullopt;
}

/// What libpq would refuse at every attempt to connect; empty when nothing. A value is not shown: of a URL
/// that is written wrongly it may be a part of a password.
std::string misfit(std::string_view keyword, std::string_view value) {
    if (value.empty()) return {};
    for (const auto& c : choices) {
        if (c.keyword != keyword) continue;
        auto words = c.words;
        while (!words.empty()) {
            const auto word = words.substr(0, words.find(' '));
            if (word == value) return {};
            words.remove_prefix(word.size() + 1);
        }
        return fmt::format("{} is none of: {}", keyword, c.words.substr(0, c.words.size() - 1));
    }
    if (std::find(numbers.begin(), numbers.end(), keyword) != numbers.end() && !whole_number(value))
        return fmt::format("{} is not a whole number", keyword);
    if (keyword != "port") return {};
    for (const auto part : parts_of(value)) {
        const auto port = whole_number(part);
        if (!part.empty() && (!port || *port < 1 || *port > 65'535)) return "a port is not 1 to 65535";
    }
    return {};
}

/// As a URL, with a directory of sockets as its parameter `host`.
std::string shown(const server& s) {
    const auto value = [&](std::string_view keyword) {
        const auto* found = s.find(keyword);
        return found == nullptr ? std::string_view{} : std::string_view(*found);
    };
    if (!value("service").empty()) return fmt::format("postgresql:///?service={}", value("service"));
    const auto host = value("host").empty() ? value("hostaddr") : value("host");
    const auto hosts = parts_of(host);
    const auto ports = parts_of(value("port"));
    std::string name = "postgresql://";
    if (!value("user").empty()) name += fmt::format("{}@", value("user"));
    const bool sockets = host.find('/') != std::string_view::npos;
    for (std::size_t i = 0; !sockets && i < hosts.size(); ++i) {
        const auto port = ports.size() == 1  ? ports.front()
                          : i < ports.size() ? ports[i]
                                             : std::string_view{};
        const bool v6 = hosts[i].find(':') != std::string_view::npos;
        name += fmt::format("{}{}{}{}", i == 0 ? "" : ",", v6 ? "[" : "", hosts[i], v6 ? "]" : "");
        if (!port.empty()) name += fmt::format(":{}", port);
    }
    if (!value("dbname").empty()) name += fmt::format("/{}", value("dbname"));
    if (sockets) name += fmt::format("{}?host={}", value("dbname").empty() ? "/" : "", host);
    return name;
}

}  // namespace

const std::string* server::find(std::string_view keyword) const {
    const auto found =
        std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.first == keyword; });
    return found == parameters.end() ? nullptr : &found->second;
}

result<server> parse_server(std::string_view given) {
    server made;
    std::string theirs(given);
    if (given.find('\0') != std::string_view::npos) return wrong("it has a zero byte");
    if (given.starts_with("postgresql://") || given.starts_with("postgres://")) {
        if (has_user_cut_short(given))
            return wrong("its user or password has an @ or a /, to be written as %40 and %2F");
        auto kept = take_ours(given, made);
        if (!kept) return tl::unexpected(std::move(kept.error()));
        theirs = std::move(*kept);
    }
    char* text = nullptr;
    const std::unique_ptr<PQconninfoOption, free_options> options(PQconninfoParse(theirs.c_str(), &text));
    const std::unique_ptr<char, free_text> why(text);
    const bool lacks_slashes = given.starts_with("postgresql:") || given.starts_with("postgres:");
    if (!options && lacks_slashes && !given.substr(0, given.find(':') + 3).ends_with("://"))
        return wrong("it does not begin with postgresql://");
    if (!options) return wrong(why ? why.get() : "there is not enough memory");
    for (const auto* o = options.get(); o->keyword != nullptr; ++o) {
        if (o->val == nullptr) continue;
        if (const auto unfit = misfit(o->keyword, o->val); !unfit.empty()) return wrong(unfit);
        made.parameters.emplace_back(o->keyword, o->val);
    }
    made.name = shown(made);
    for (const auto& [keyword, value] : defaults) {
        if (made.find(keyword) == nullptr) made.parameters.emplace_back(keyword, value);
    }
    std::erase_if(made.parameters, [](const auto& p) { return p.first == "client_encoding"; });
    made.parameters.emplace_back("client_encoding", "UTF8");
    return made;
}

}  // namespace millrace::postgres
