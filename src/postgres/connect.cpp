#include "connection_impl.hpp"
#include "postgres_error.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <limits>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <poll.h>

namespace millrace::postgres {

namespace {

/// The lists of libpq that go together, one entry a host.
constexpr std::array host_lists{"host", "hostaddr", "port"};

std::size_t hosts_of(const server& where) {
    std::size_t most = 1;
    for (const auto* keyword : host_lists) {
        if (const auto* list = where.find(keyword)) {
            most = std::max(most, static_cast<std::size_t>(std::count(list->begin(), list->end(), ',')) + 1);
        }
    }
    return most;
}

/// The same server with the first host last.
server rotated(server where) {
    for (auto& [keyword, list] : where.parameters) {
        if (std::find(host_lists.begin(), host_lists.end(), std::string_view(keyword)) == host_lists.end())
            continue;
        const auto comma = list.find(',');
        if (comma != std::string::npos) list = list.substr(comma + 1) + "," + list.substr(0, comma);
    }
    return where;
}

milliseconds timeout_of(const server& where) {
    constexpr int longest = 24 * 3'600;
    const auto* given = where.find("connect_timeout");
    int seconds = 0;
    if (given != nullptr) (void)std::from_chars(given->data(), given->data() + given->size(), seconds);
    return std::chrono::seconds{seconds <= 0 ? longest : std::clamp(seconds, 2, longest)};  // as libpq has it
}

handle start(const server& where) {
    std::vector<const char*> keywords;
    std::vector<const char*> values;
    for (const auto& [keyword, value] : where.parameters) {
        keywords.push_back(keyword.c_str());
        values.push_back(value.c_str());
    }
    keywords.push_back(nullptr);
    values.push_back(nullptr);
    handle made(PQconnectStartParams(keywords.data(), values.data(), 0));
    if (made) {
        PQsetErrorVerbosity(made.get(), PQERRORS_VERBOSE);  // shows the SQLSTATE of a refusal
        PQsetNoticeProcessor(
            made.get(), [](void*, const char*) {}, nullptr
        );
    }
    return made;
}

error late(const server& where, const PGconn* at, milliseconds limit) {
    const char* host = PQhost(at);
    return {
        errc::unavailable,
        retry_advice::after_delay,
        false,
        fmt::format(
            "cannot connect to {}: host \"{}\" did not answer within {} ms; check the address, the network "
            "and the server",
            where.name,
            host == nullptr ? "" : host,
            limit.count()
        )};
}

/// Connects to the first host that will have us; libpq goes on to the next when one refuses. Sets `hung` when
/// a host says nothing, which libpq leaves to us.
result<handle> attempt(const server& where, const stop_signal& stop, bool& hung) {
    auto made = start(where);
    if (!made)
        return fail(errc::unavailable, "there is not enough memory to connect", retry_advice::after_delay);
    const auto limit = timeout_of(where);
    auto until = steady::now() + limit;
    const char* host = nullptr;  // libpq's own copies: by their place they tell the hosts apart
    const char* port = nullptr;
    auto wanted = PGRES_POLLING_WRITING;
    while (PQstatus(made.get()) != CONNECTION_BAD && wanted != PGRES_POLLING_FAILED) {
        if (wanted == PGRES_POLLING_OK) return made;
        if (host != PQhost(made.get()) || port != PQport(made.get())) until = steady::now() + limit;
        host = PQhost(made.get());
        port = PQport(made.get());
        const short events = wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        const auto outcome = wait_for(PQsocket(made.get()), events, until, stop);
        if (outcome == waited::stopped) {
            return fail(
                errc::cancelled, fmt::format("cannot connect to {}: this process is stopping", where.name)
            );
        }
        if (outcome == waited::late) {
            hung = true;
            return tl::unexpected(late(where, made.get(), limit));
        }
        wanted = PQconnectPoll(made.get());
    }
    return tl::unexpected(connect_error(PQerrorMessage(made.get()), where.name));
}

/// In a database of no encoding texts are bytes, and are checked against the encoding that a client names.
result<handle> attempt_as_encoded(server& where, const stop_signal& stop, bool& hung) {
    constexpr std::string_view no_encoding = "SQL_ASCII";
    auto made = attempt(where, stop, hung);
    if (!made) return made;
    const char* const encoding = PQparameterStatus(made->get(), "server_encoding");
    if (encoding == nullptr || encoding != no_encoding) return made;
    const auto own = std::find_if(where.parameters.begin(), where.parameters.end(), [](const auto& p) {
        return p.first == "client_encoding";
    });
    if (own == where.parameters.end() || own->second == no_encoding) return made;
    own->second = no_encoding;
    made->reset();
    return attempt(where, stop, hung);
}

}  // namespace

waited wait_for(int socket, short events, steady::time_point until, const stop_signal& stop) {
    for (;;) {
        std::array<pollfd, 2> both{{{socket, events, 0}, {stop.fd(), POLLIN, 0}}};
        const auto left = std::chrono::ceil<milliseconds>(until - steady::now()).count();
        const auto most = static_cast<std::int64_t>(std::numeric_limits<int>::max());
        const int ready =
            poll(both.data(), both.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, most)));
        if (stop.is_set()) return waited::stopped;
        if (ready > 0) return waited::ready;
        if (steady::now() >= until) return waited::late;
    }
}

void request_cancel(PGconn* of) {
    // libpq's call blocks until the server hangs up, so it has a thread of its own; a server that never does
    // so keeps a few of them.
    constexpr int at_once_max = 4;
    static std::atomic<int> running{0};
    auto cancel = std::shared_ptr<PGcancel>(PQgetCancel(of), &PQfreeCancel);
    if (!cancel) return;
    if (running.fetch_add(1) >= at_once_max) {
        running.fetch_sub(1);
        return;
    }
    std::thread([cancel = std::move(cancel)] {
        std::array<char, 256> ignored{};  // the server's own limit ends the statement, too
        (void)PQcancel(cancel.get(), ignored.data(), static_cast<int>(ignored.size()));
        running.fetch_sub(1);
    }).detach();
}

result<connection> connection::open(const server& where, const stop_signal& stop, limits given) {
    auto order = where;
    for (auto left = hosts_of(where);; --left) {
        bool hung = false;
        auto made = attempt_as_encoded(order, stop, hung);
        if (!made) {
            if (!hung || left <= 1) return tl::unexpected(std::move(made.error()));
            order = rotated(std::move(order));
            continue;
        }
        PQsetErrorVerbosity(made->get(), PQERRORS_DEFAULT);
        if (PQsetnonblocking(made->get(), 1) != 0 || PQenterPipelineMode(made->get()) != 1) {
            return fail(
                errc::unavailable,
                fmt::format("cannot use {}: the connection was lost", where.name),
                retry_advice::now
            );
        }
        return connection(std::make_unique<impl>(std::move(*made), where.name, stop, given));
    }
}

}  // namespace millrace::postgres
