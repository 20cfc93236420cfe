#include "kafka_url.hpp"

#include "handles.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <fmt/core.h>

namespace millrace {

namespace {

constexpr std::string_view scheme = "kafka://";
constexpr std::string_view expected = "kafka://HOST:PORT[,HOST:PORT...][?PROPERTY=VALUE&...]";
constexpr std::string_view hidden = "***";

tl::unexpected<error> bad_url(std::string_view url, std::string_view why) {
    return fail(
        errc::invalid_argument,
        fmt::format("Kafka URL \"{}\" {}; expected {}", shown_kafka_url(url), why, expected)
    );
}

/// Calls `part` for each piece between separators.
template <class F>
void split(std::string_view text, char separator, F part) {
    for (;;) {
        const auto end = text.find(separator);
        part(text.substr(0, end));
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
    }
}

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string bytes;
    bytes.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            bytes += text[i];
            continue;
        }
        unsigned value = 0;
        const auto digits = text.substr(i + 1, 2);
        const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
        if (digits.size() != 2 || fault != std::errc{} || end != digits.data() + 2) return std::nullopt;
        bytes += static_cast<char>(value);
        i += 2;
    }
    return bytes;
}

/// What is wrong with `HOST`, `HOST:PORT` or `[IPV6]:PORT`; empty when nothing.
std::string_view fault_of_server(std::string_view server) {
    if (server.empty()) return "names an empty host";
    if (server.find_first_of(" /@\t\"'") != std::string_view::npos)
        return "has a host with a character that no host has (a user and a password are the properties "
               "sasl.username and sasl.password)";
    auto port = server;
    if (server.front() == '[') {
        const auto bracket = server.find(']');
        if (bracket == std::string_view::npos) return "has a [ without its ]";
        port.remove_prefix(bracket + 1);
    } else {
        const auto colon = server.find(':');
        if (colon == 0) return "names an empty host";
        port.remove_prefix(colon == std::string_view::npos ? server.size() : colon);
    }
    if (port.empty()) return {};
    unsigned number = 0;
    const auto* const last = port.data() + port.size();
    const auto [end, fault] = std::from_chars(port.data() + 1, last, number);
    const auto valid = port.front() == ':' && fault == std::errc{} && end == last;
    return valid && number >= 1 && number <= 65'535 ? std::string_view{}
                                                    : "has a port that is not 1 to 65535";
}

bool exists(const std::string& property) {
    // Only to set one tells whether it is known: to read one that has no value does not.
    const kafka::conf_ptr client(rd_kafka_conf_new());
    return rd_kafka_conf_set(client.get(), property.c_str(), "", nullptr, 0) != RD_KAFKA_CONF_UNKNOWN;
}

/// Whether the query has what is no property but the rest of `USER:PASSWORD@HOST`, a password with a `?`.
bool has_lost_user(std::string_view query) {
    bool lost = false;
    split(query, '&', [&](std::string_view part) {
        lost = lost || (part.find('@') != std::string_view::npos && part.find('=') == std::string_view::npos);
    });
    return lost;
}

}  // namespace

const std::string* kafka_address::find(std::string_view property) const noexcept {
    const auto at = std::ranges::find(properties, property, &kafka_property::name);
    return at == properties.end() ? nullptr : &at->value;
}

bool is_kafka_secret(std::string_view property) noexcept {
    constexpr std::array<std::string_view, 6> marks{
        "password", "secret", "key.pem", "oauthbearer.config", "jaas", "assertion"};
    return std::ranges::any_of(marks, [&](std::string_view mark) {
        return property.find(mark) != std::string_view::npos;
    });
}

std::string shown_kafka_url(std::string_view url) {
    const auto query = url.find('?');
    auto servers = url.substr(0, query);
    std::string shown;
    if (const auto at = servers.rfind('@'); at != std::string_view::npos) {
        shown = fmt::format("{}{}", servers.starts_with(scheme) ? scheme : std::string_view{}, hidden);
        servers.remove_prefix(at);
    } else if (has_lost_user(url.substr(std::min(url.size(), query)))) {
        shown = fmt::format("{}{}", servers.starts_with(scheme) ? scheme : std::string_view{}, hidden);
        servers = {};
    }
    shown += servers;
    if (query == std::string_view::npos) return shown;
    char before = '?';
    bool behind_secret = false;
    split(url.substr(query + 1), '&', [&](std::string_view part) {
        const auto equals = part.find('=');
        const auto name = percent_decoded(part.substr(0, equals)).value_or("password");
        shown += before;
        before = '&';
        if (equals != std::string_view::npos && is_kafka_secret(name)) {
            behind_secret = true;
            shown += fmt::format("{}={}", part.substr(0, equals), hidden);
        } else if (!part.empty() && (equals == std::string_view::npos || (behind_secret && !exists(name)))) {
            shown += hidden;  // no property, so perhaps a part of a password
        } else {
            shown += part;
        }
    });
    return shown;
}

result<kafka_address> parse_kafka_url(std::string_view url) {
    if (!url.starts_with(scheme)) return bad_url(url, "does not begin with kafka://");
    if (url.find('#') != std::string_view::npos) return bad_url(url, "has a #; write it as %23");
    const auto query = url.find('?');
    kafka_address address;
    auto servers = url.substr(0, query);
    servers.remove_prefix(scheme.size());
    if (servers.ends_with('/')) servers.remove_suffix(1);
    if (servers.empty()) return bad_url(url, "names no broker");
    std::string_view wrong;
    split(servers, ',', [&](std::string_view server) {
        if (wrong.empty()) wrong = fault_of_server(server);
    });
    if (!wrong.empty()) return bad_url(url, wrong);
    address.servers = servers;
    if (query == std::string_view::npos || query + 1 == url.size()) return address;

    std::string fault;
    std::string secret;
    split(url.substr(query + 1), '&', [&](std::string_view part) {
        if (!fault.empty()) return;
        const auto equals = part.find('=');
        const auto name = percent_decoded(part.substr(0, equals));
        if (equals == std::string_view::npos || !name || name->empty()) {
            fault = "has a property without a name or a value (an & in a value is %26)";
            return;
        }
        if (!secret.empty() && !exists(*name)) {
            fault = fmt::format("has behind {} what is no property (an & in a value is %26)", secret);
            return;
        }
        if (is_kafka_secret(*name)) secret = *name;
        auto value = percent_decoded(part.substr(equals + 1));
        if (!value || value->find('\0') != std::string::npos) {
            fault = fmt::format("has a value of {} that is not percent-encoded (a % is %25)", *name);
        } else if (address.find(*name) != nullptr) {
            fault = fmt::format("sets {} twice", *name);
        } else {
            address.properties.push_back({*name, std::move(*value)});
        }
    });
    if (!fault.empty()) return bad_url(url, fault);
    return address;
}

}  // namespace millrace
