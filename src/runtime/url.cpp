#include "local_url.hpp"
#include "text/nearest.hpp"
#include "text/one_line.hpp"
#ifdef MILLRACE_WITH_POSTGRES
#include "server.hpp"
#endif
#ifdef MILLRACE_WITH_KAFKA
#include "kafka_conf.hpp"
#include "kafka_url.hpp"
#endif
#ifdef MILLRACE_WITH_AWS
#include "dynamodb_url.hpp"
#include "kinesis_url.hpp"
#endif

#include <millrace/url.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
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
    auto address = parse_local_stream("local:" + u.path);
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

#ifdef MILLRACE_WITH_POSTGRES
result<url> read_postgres(url u) {
    u.scheme = "postgresql";
    const auto server = postgres::parse_server(u.path);
    if (!server) return tl::unexpected(server.error());
    const auto refuse = [&](std::string_view parameter, std::string_view whose) {
        return fail(
            errc::invalid_argument,
            fmt::format("\"{}\" has the parameter {}, which is only of {}", u.given, parameter, whose)
        );
    };
    const bool is_state = u.role == url_role::state;
    if (is_state && server->table) return refuse("table", "an outbox");
    if (!is_state && server->schema) return refuse("schema", "a state; write table=schema.name");
    return u;
}

result<url> read_positions(url u) {
    auto read = read_postgres(std::move(u));
    if (!read || postgres::parse_server(read->path)->table) return read;
    return fail(
        errc::invalid_argument,
        fmt::format(
            "\"{}\" names no table; add ?table=NAME, the one given to the former consumer", read->given
        )
    );
}
#endif

#ifdef MILLRACE_WITH_KAFKA
result<url> read_kafka(url u) {
    if (u.role == url_role::dead_letters) {
        const auto query = std::min(u.path.size(), u.path.find('?'));
        const auto slash = u.path.rfind('/', query);
        constexpr std::size_t scheme = std::string_view("kafka://").size();
        u.stream =
            slash == std::string::npos || slash < scheme ? "" : u.path.substr(slash + 1, query - slash - 1);
        if (u.stream.empty()) {
            return fail(
                errc::invalid_argument,
                fmt::format("\"{}\" names no topic; write kafka://HOST:PORT/TOPIC", u.given)
            );
        }
        u.path.erase(slash, query - slash);
    }
    const auto address = parse_kafka_url(u.path);
    if (!address) return tl::unexpected(address.error());
    if (const auto fit = kafka::check_properties(*address); !fit) return tl::unexpected(fit.error());
    return u;
}
#endif

#ifdef MILLRACE_WITH_AWS
result<url> read_kinesis(url u) {
    const auto address = parse_kinesis_url(u.path);
    if (!address) return tl::unexpected(address.error());
    u.stream = address->name();
    if (u.role == url_role::sink) return u;
    const auto bad = [&](std::string_view why) {
        return fail(
            errc::invalid_argument,
            fmt::format("\"{}\" {}; write kinesis://REGION/STREAM[?endpoint=URL]", u.given, why)
        );
    };
    if (u.stream.empty()) return bad("names no stream");
    if (address->losses) return bad("has parameters that are only of a sink");
    return u;
}

result<url> read_dynamodb(url u) {
    if (const auto address = parse_dynamodb_url(u.path, u.given); !address)
        return tl::unexpected(address.error());
    return u;
}
#endif

/// A scheme is a line here, and a line where it is opened (`adapters.cpp`).
struct scheme {
    std::string_view name;
    url_role role;
    std::string_view form;  ///< Empty: another name of the scheme before.
    reader read;
    bool is_server{false};  ///< The reader is given the whole address.
};

constexpr std::array schemes{
    scheme{"sqlite", url_role::outbox, "sqlite:PATH", read_file},
    scheme{"local", url_role::sink, "local:PATH", read_file},
    scheme{"local", url_role::stream, "local:PATH/STREAM", read_stream},
    scheme{"sqlite", url_role::state, "sqlite:PATH", read_file},
    scheme{"memory", url_role::state, "memory: (within one process)", read_memory},
    scheme{"sqlite", url_role::dead_letters, "sqlite:PATH (an outbox)", read_file},
    scheme{"local", url_role::dead_letters, "local:PATH/STREAM", read_stream},
#ifdef MILLRACE_WITH_POSTGRES
    scheme{
        "postgresql",
        url_role::outbox,
        "postgresql://HOST/DATABASE[?table=SCHEMA.NAME]",
        read_postgres,
        true},
    scheme{"postgres", url_role::outbox, "", read_postgres, true},
    scheme{"postgresql", url_role::state, "postgresql://HOST/DATABASE[?schema=NAME]", read_postgres, true},
    scheme{"postgres", url_role::state, "", read_postgres, true},
    scheme{
        "postgresql", url_role::dead_letters, "postgresql://HOST/DATABASE (an outbox)", read_postgres, true},
    scheme{"postgres", url_role::dead_letters, "", read_postgres, true},
    scheme{"postgresql", url_role::positions, "postgresql://HOST/DATABASE?table=NAME", read_positions, true},
    scheme{"postgres", url_role::positions, "", read_positions, true},
#endif
#ifdef MILLRACE_WITH_KAFKA
    scheme{"kafka", url_role::sink, "kafka://HOST:PORT[,HOST:PORT...]", read_kafka, true},
    scheme{"kafka", url_role::dead_letters, "kafka://HOST:PORT/TOPIC", read_kafka, true},
#endif
#ifdef MILLRACE_WITH_AWS
    scheme{"kinesis", url_role::sink, "kinesis://REGION[/STREAM][?endpoint=URL]", read_kinesis, true},
    scheme{"kinesis", url_role::stream, "kinesis://REGION/STREAM[?endpoint=URL]", read_kinesis, true},
    scheme{"kinesis", url_role::dead_letters, "kinesis://REGION/STREAM[?endpoint=URL]", read_kinesis, true},
    scheme{"dynamodb", url_role::state, "dynamodb://REGION/TABLE[?endpoint=URL]", read_dynamodb, true},
    scheme{"dynamodb", url_role::positions, "dynamodb://REGION/TABLE[?endpoint=URL]", read_dynamodb, true},
#endif
};

/// What is known and not there, and why.
struct absent_scheme {
    std::string_view name;
    std::string_view why;
};

const std::initializer_list<absent_scheme> absent{
// empty where nothing was left out
#ifndef MILLRACE_WITH_POSTGRES
    absent_scheme{"postgresql", "which was left out of this build (MILLRACE_WITH_POSTGRES)"},
    absent_scheme{"postgres", "which was left out of this build (MILLRACE_WITH_POSTGRES)"},
#endif
#ifndef MILLRACE_WITH_AWS
    absent_scheme{"dynamodb", "which was left out of this build (MILLRACE_WITH_AWS)"},
    absent_scheme{"kinesis", "which was left out of this build (MILLRACE_WITH_AWS)"},
#endif
#ifndef MILLRACE_WITH_KAFKA
    absent_scheme{"kafka", "which was left out of this build (MILLRACE_WITH_KAFKA)"},
#endif
};

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
        case url_role::positions:
            return "positions";
    }
    return "";
}

/// `sqlite:PATH or memory:`: what exists for the role.
std::string forms_of(url_role role) {
    std::string forms;
    for (const auto& s : schemes) {
        if (s.role == role && !s.form.empty())
            forms += fmt::format("{}{}", forms.empty() ? "" : " or ", s.form);
    }
    return forms;
}

/// What is not may be a part of a secret, and is not shown.
bool is_scheme(std::string_view name) {
    return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._/") ==
           std::string_view::npos;
}

/// `host=db user=relay`: what goharvest's `dataSource` holds.
bool is_words_of_libpq(std::string_view text) {
    const auto equals = text.find('=');
    return equals != std::string_view::npos && equals > 0 &&
           text.substr(0, equals).find_first_not_of("abcdefghijklmnopqrstuvwxyz_ ") == std::string_view::npos;
}

std::string hint_for(std::string_view name, url_role role) {
    for (const auto& a : absent)
        if (a.name == name) return std::string(a.why);
    std::vector<std::string_view> known;
    for (const auto& s : schemes) {
        if (s.role == role) known.push_back(s.name);
    }
    return fmt::format("which is not known{}", did_you_mean(name, known));
}

}  // namespace

result<url> parse_url(std::string_view given, url_role role) {
    const auto shown = one_line(without_secrets(given));
    const auto bad = [&](std::string_view why) {
        return fail(
            errc::invalid_argument,
            fmt::format("{} URL \"{}\" {}; expected {}", name_of_role(role), shown, why, forms_of(role))
        );
    };
    if (given.empty()) return bad("is empty");
    const auto colon = given.find(':');
    const auto name = given.substr(0, colon);
    if (is_words_of_libpq(name)) return bad("is made of words as libpq takes them; write it as a URL");
    if (colon == std::string_view::npos || !is_scheme(name)) return bad("has no scheme");
    bool known = false;
    for (const auto& s : schemes) {
        known = known || s.name == name;
        if (s.name != name || s.role != role) continue;
        const auto rest = s.is_server ? given : given.substr(colon + 1);
        auto read = s.read({role, shown, std::string(name), std::string(rest), ""});
        if (!read && s.read == read_file) return bad(read.error().detail);
        return read;
    }
    if (known) return bad(fmt::format("has the scheme \"{}\", which is of no use here", name));
    return bad(fmt::format("has the scheme \"{}\", {}", name, hint_for(name, role)));
}

}  // namespace millrace
