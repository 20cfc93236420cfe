#include "adapters.hpp"
#include "event_loop.hpp"
#include "worker_release.hpp"

#include <millrace/release.hpp>
#include <millrace/url.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

/// Looking at a state must not make it.
result<void> must_know(const url& state, const group_key& group) {
    const auto known = known_groups(state, group.stream);
    if (!known) return tl::unexpected(known.error());
    if (std::find(known->begin(), known->end(), group.name) != known->end()) return {};
    return fail(
        errc::not_found,
        fmt::format(
            "{} knows no group \"{}\"{}; check the names",
            state.given,
            group.name,
            group.stream.empty() ? "" : fmt::format(" of stream \"{}\"", group.stream)
        )
    );
}

}  // namespace

result<released_worker> release_worker(const release_request& which) {
    auto state = parse_url(which.state, url_role::state);
    if (!state) return tl::unexpected(std::move(state.error()));
    group_key group{"", which.group};
    if (!which.stream.empty()) {
        auto stream = parse_url(which.stream, url_role::stream);
        if (!stream) return tl::unexpected(std::move(stream.error()));
        group.stream = std::move(stream->stream);
    }
    if (auto known = must_know(*state, group); !known) return tl::unexpected(std::move(known.error()));

    event_loop loop;
    auto store = open_lease_store(
        *state,
        group,
        loop,
        {file_use::write, std::min(store_use{}.busy_timeout, std::chrono::ceil<milliseconds>(which.wait / 4))}
    );
    if (!store) return tl::unexpected(std::move(store.error()));
    worker_release job(loop, **store, which.worker, which.wait);
    std::optional<result<worker_release_report>> outcome;
    job.start([&](result<worker_release_report> how) {
        outcome = std::move(how);
        loop.stop();
    });
    loop.run();
    if (!*outcome) return tl::unexpected(std::move(outcome->error()));
    released_worker released{(*outcome)->sessions, {}};
    for (const auto& shard : (*outcome)->shards)
        released.shards.push_back(shard.value());
    return released;
}

}  // namespace millrace
