#include "local_url.hpp"
#include "text/nearest.hpp"

#include <millrace/url.hpp>

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

namespace millrace {

namespace {

/// Completes an address whose scheme and rest are known; an error says what is wrong with the rest.
using reader = result<url> (*)(url);

/// Why SQLite would not take a path for the name of a file; empty when it does.
std::string_view not_a_file(std::string_view path) {
    if (path == ":memory:") return "names no file but a database in memory, which would be lost at once";
    if (path.starts_with("file:"))
        return "has a URI in place of a path; write the path alone, or ./file:... if the file is called so";
    return {};
}

result<url> read_file(url u) {
    if (u.path.empty()) return fail(errc::invalid_argument, "names no file");
    if (u.path.back() == '/') return fail(errc::invalid_argument, "names a directory");
    if (const auto why = not_a_file(u.path); !why.empty()) {
        return fail(errc::invalid_argument, std::string(why));
    }
    return u;
}

result<url> read_stream(url u) {
    auto address = parse_local_stream(u.given);
    if (!address) return tl::unexpected(std::move(address.error()));
    if (const auto why = not_a_file(address->file); !why.empty()) {
        return fail(errc::invalid_argument, fmt::format("URL \"{}\" {}", u.given, why));
    }
    u.path = std::move(address->file);
    u.stream = std::move(address->stream);
    return u;
}

result<url> read_memory(url u) {
    return u;
}

/// A scheme is a line here, and a line where it is opened (`adapters.cpp`).
struct scheme {
    std::string_view name;
    url_role role;
    std::string_view form;
    reader read;
};

constexpr std::array schemes{
    scheme{"sqlite", url_role::outbox, "sqlite:PATH", read_file},
    scheme{"local", url_role::sink, "local:PATH", read_file},
    scheme{"local", url_role::stream, "local:PATH/STREAM", read_stream},
    scheme{"sqlite", url_role::state, "sqlite:PATH", read_file},
    scheme{"memory", url_role::state, "memory: (within one process)", read_memory},
    scheme{"sqlite", url_role::dead_letters, "sqlite:PATH (an outbox)", read_file},
    scheme{"local", url_role::dead_letters, "local:PATH/STREAM", read_stream},
};

constexpr std::array<std::string_view, 5> elsewhere{"kafka", "kinesis", "postgres", "postgresql", "dynamodb"};

std::string_view name_of_role(url_role role) {
    switch (role) {
        case url_role::outbox:
            return "outbox";
        case url_role::sink:
            return "sink";
        case url_role::stream:
            return "stream";
        case url_role::state:
            return "state";
        case url_role::dead_letters:
            return "dead-letter";
    }
    return "";
}

/// `sqlite:PATH or memory:`: what exists for the role.
std::string forms_of(url_role role) {
    std::string forms;
    for (const auto& s : schemes) {
        if (s.role == role) forms += fmt::format("{}{}", forms.empty() ? "" : " or ", s.form);
    }
    return forms;
}

std::string hint_for(std::string_view name, url_role role) {
    if (std::find(elsewhere.begin(), elsewhere.end(), name) != elsewhere.end()) {
        return "which comes with another build of millrace";
    }
    std::vector<std::string_view> known;
    for (const auto& s : schemes) {
        if (s.role == role) known.push_back(s.name);
    }
    return fmt::format("which is not known{}", did_you_mean(name, known));
}

}  // namespace

result<url> parse_url(std::string_view given, url_role role) {
    const auto bad = [&](std::string_view why) {
        return fail(
            errc::invalid_argument,
            fmt::format("{} URL \"{}\" {}; expected {}", name_of_role(role), given, why, forms_of(role))
        );
    };
    if (given.empty()) return bad("is empty");
    const auto colon = given.find(':');
    if (colon == std::string_view::npos) return bad("has no scheme");
    const auto name = given.substr(0, colon);
    bool known = false;
    for (const auto& s : schemes) {
        known = known || s.name == name;
        if (s.name != name || s.role != role) continue;
        auto read =
            s.read({role, std::string(given), std::string(name), std::string(given.substr(colon + 1)), ""});
        if (!read && s.read == read_file) return bad(read.error().detail);
        return read;
    }
    if (known) return bad(fmt::format("has the scheme \"{}\", which is of no use here", name));
    return bad(fmt::format("has the scheme \"{}\", {}", name, hint_for(name, role)));
}

}  // namespace millrace
