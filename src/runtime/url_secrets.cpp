#include <millrace/url.hpp>

#include <algorithm>
#include <array>

namespace millrace {

namespace {

constexpr std::string_view hidden = "***";

/// Whether the value of a parameter of this name must not be shown. A name that is written in code is one of
/// which nobody can tell.
bool is_secret(std::string_view name) {
    constexpr std::array<std::string_view, 9> marks{
        "%", "password", "passwd", "secret", "token", "jaas", "assertion", "key.pem", "oauthbearer.config"};
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) {
        return lower.find(mark) != std::string::npos;
    });
}

/// Whether this can hardly be a piece of a secret that holds an & and a = as they are.
bool is_parameter(std::string_view name) {
    constexpr std::array<std::string_view, 42> without_dot{
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "passfile",
        "service",
        "connect_timeout",
        "client_encoding",
        "options",
        "application_name",
        "fallback_application_name",
        "keepalives",
        "keepalives_idle",
        "keepalives_interval",
        "keepalives_count",
        "tcp_user_timeout",
        "replication",
        "gssencmode",
        "sslmode",
        "requiressl",
        "sslcompression",
        "sslcert",
        "sslkey",
        "sslrootcert",
        "sslcrl",
        "sslcrldir",
        "sslsni",
        "requirepeer",
        "ssl_min_protocol_version",
        "ssl_max_protocol_version",
        "krbsrvname",
        "gsslib",
        "channel_binding",
        "target_session_attrs",
        "table",
        "schema",
        "endpoint",
        "acks",
        "retries",
        "debug",
        "partitioner"};
    if (std::find(without_dot.begin(), without_dot.end(), name) != without_dot.end()) return true;
    // As librdkafka's: lower-case words with dots between.
    const auto dot = name.find('.');
    return dot != std::string_view::npos && dot > 1 &&
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == std::string_view::npos;
}

/// Whether this can only be `HOST:PORT,HOST:PORT/...`, and so hold no user and password.
bool is_list_of_hosts(std::string_view servers) {
    servers = servers.substr(0, servers.find('/'));
    while (!servers.empty()) {
        const auto host = servers.substr(0, servers.find(','));
        servers.remove_prefix(std::min(servers.size(), host.size() + 1));
        const auto port = host.substr(std::min(host.size(), host.find_last_of(":]")));
        if (port.find_first_not_of(":]0123456789") != std::string_view::npos && port != host) return false;
    }
    return true;
}

/// `USER:PASSWORD@` loses its password, also where the password holds what should have been encoded.
std::string shown_servers(std::string_view servers, std::string_view query, std::string_view& rest) {
    rest = query;
    auto at = servers.rfind('@');
    std::string_view whole = servers;
    if (at == std::string_view::npos && !is_list_of_hosts(servers)) {
        // A password with a question mark.
        const auto in_query = query.rfind('@');
        if (in_query != std::string_view::npos) {
            whole = {servers.data(), servers.size() + query.size()};
            at = servers.size() + in_query;
            rest = {};
        }
    }
    const auto colon = whole.find(':');
    if (at == std::string_view::npos || colon == std::string_view::npos || colon > at)
        return std::string(whole);
    std::string shown(whole.substr(0, colon + 1));
    shown += hidden;
    shown += whole.substr(at);
    return shown;
}

/// Text in which a secret can hide without `://` in front of it: a file holds none.
bool names_a_file(std::string_view text) {
    return text.starts_with("sqlite:") || text.starts_with("local:") || text.starts_with("memory:");
}

bool is_in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '%';
}

/// Where the value that begins at `at` ends: before the next `NAME=` behind a space, or at its own quote.
std::size_t end_of_value(std::string_view text, std::size_t at) {
    constexpr std::string_view spaces = " \t\r\n";
    if (at < text.size() && text[at] == '\'') {
        for (std::size_t i = at + 1; i < text.size(); ++i) {
            if (text[i] == '\\')
                ++i;
            else if (text[i] == '\'')
                return i + 1;
        }
        return text.size();
    }
    for (auto space = text.find_first_of(spaces, at); space != std::string_view::npos;) {
        const auto word = text.find_first_not_of(spaces, space);
        if (word == std::string_view::npos) return space;
        auto end = word;
        while (end < text.size() && is_in_word(text[end]))
            ++end;
        const auto equals = text.find_first_not_of(spaces, end);
        if (end > word && equals != std::string_view::npos && text[equals] == '=') return space;
        space = text.find_first_of(spaces, word);
    }
    return text.size();
}

/// As libpq's `host=db password=secret`: the values of secret names are hidden, wherever they stand.
std::string without_secret_words(std::string_view text) {
    std::string shown;
    while (true) {
        const auto equals = text.find('=');
        if (equals == std::string_view::npos) break;
        auto name_end = equals;
        while (name_end > 0 && (text[name_end - 1] == ' ' || text[name_end - 1] == '\t'))
            --name_end;
        auto name_at = name_end;
        while (name_at > 0 && is_in_word(text[name_at - 1]))
            --name_at;
        shown += text.substr(0, equals + 1);
        const bool secret = is_secret(text.substr(name_at, name_end - name_at));
        text.remove_prefix(equals + 1);
        if (!secret) continue;
        const auto begin = std::min(text.find_first_not_of(" \t"), text.size());
        if (begin == text.size()) break;
        shown += hidden;
        text.remove_prefix(end_of_value(text, begin));
    }
    return shown += text;
}

/// What is no address at all, but may be meant as one.
std::string shown_without_scheme(std::string_view text) {
    if (names_a_file(text)) return std::string(text);
    auto shown = without_secret_words(text);
    const auto colon = shown.find(':');
    const auto at = shown.rfind('@');
    if (at != std::string::npos && colon < at) shown.replace(colon + 1, at - colon - 1, hidden);
    return shown;
}

}  // namespace

std::string without_secrets(std::string_view address) {
    const auto begin = address.find("://");
    if (begin == std::string_view::npos) return shown_without_scheme(address);
    const auto body = address.substr(begin + 3);
    const auto query_at = std::min(body.size(), body.find('?'));
    std::string_view query;
    std::string shown = shown_without_scheme(address.substr(0, begin));
    shown += "://";
    shown += shown_servers(body.substr(0, query_at), body.substr(query_at), query);
    bool behind_secret = false;
    while (!query.empty()) {
        shown += query.front();  // ? or &
        query.remove_prefix(1);
        const auto part = query.substr(0, query.find('&'));
        query.remove_prefix(part.size());
        const auto equals = part.find('=');
        const auto name = part.substr(0, std::min(equals, part.size()));
        const bool secret = is_secret(name);
        if (equals == std::string_view::npos || (behind_secret && !secret && !is_parameter(name))) {
            shown += part.empty() ? "" : hidden;  // no parameter, so perhaps a part of something else
            continue;
        }
        behind_secret = behind_secret || secret;
        shown += part.substr(0, equals + 1);
        // A value may be an address, whose password may hold what ends this parameter.
        const auto value = part.substr(equals + 1);
        const bool cut = value.find("://") != std::string_view::npos &&
                         value.find('@') == std::string_view::npos &&
                         query.find('@') != std::string_view::npos;
        shown += cut || secret ? std::string(hidden) : without_secrets(value);
    }
    return shown;
}

}  // namespace millrace
