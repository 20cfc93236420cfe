#include "local_sink.hpp"

#include "db_thread.hpp"
#include "local_catalog.hpp"
#include "local_schema.hpp"
#include "local_url.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

local::new_record view(const outbox_row& row) {
    return {row.key, row.value, row.headers};
}

error purged() {
    return {
        errc::purged,
        retry_advice::now,
        false,
        "not tried: an earlier row of this channel was refused; send it again after a reset"};
}

/// What the stream refuses about this row alone; nothing when it may be appended.
std::optional<error> refusal(const outbox_row& row, const local_limits& limits) {
    if (!row.malformed.empty())
        return error{errc::refused_record, retry_advice::never, false, std::string(row.malformed)};
    return local::too_large(view(row), limits);
}

}  // namespace

struct local_sink::impl {
    impl(host& home, const std::string& file, local_sink_options given)
        : options(std::move(given)), thread(home, [this, file] {
              routes.clear();  // they belong to the connection before
              return local::open_streams(file, sqlite::open_mode::must_exist, options.busy_timeout);
          }) {}

    result<publish_outcome> publish_main(
        sqlite::database& db, std::uint64_t ticket, const std::vector<outgoing_row>& rows, epoch mine
    );
    result<publish_outcome> append(
        sqlite::database& db, const std::vector<outgoing_row>& rows, epoch mine, bool stop_at_refusal
    );
    result<std::optional<error>> append_row(
        local::append_transaction& to, const outbox_row& row, const std::string& outbox
    );

    const local_sink_options options;

    // Main's requests have tickets in order. One that was not published in full does not count up `expected`,
    // whatever the reason: so all behind it, which were queued meanwhile, come back as purged.
    std::uint64_t next_ticket{0};                // the host's
    std::atomic<std::uint64_t> oldest_valid{0};  // set by a reset: tickets below it are purged
    std::uint64_t expected{0};                   // the thread's, as all below

    local::routing_cache routes;
    std::vector<record_header> headers;

    sqlite::db_thread thread;  // the last one: its jobs use the others
};

result<std::optional<error>> local_sink::impl::append_row(
    local::append_transaction& to, const outbox_row& row, const std::string& outbox
) {
    if (auto why = refusal(row, options.limits)) return why;
    auto record = view(row);
    if (options.outbox) {
        headers.assign(row.headers.begin(), row.headers.end());
        headers.push_back({outbox_header, outbox});
        record.headers = headers;
    }
    auto done = to.add(row.topic, record);
    if (done) return std::nullopt;
    if (done.error().code != errc::not_found) return tl::unexpected(std::move(done.error()));
    // As a topic of Kafka: a stream may yet be made, and until then only its own rows wait.
    done.error().code = errc::refused_topic;
    if (check_stream_name(row.topic)) done.error().retry = retry_advice::after_delay;
    return std::move(done.error());
}

result<publish_outcome> local_sink::impl::append(
    sqlite::database& db, const std::vector<outgoing_row>& rows, epoch mine, bool stop_at_refusal
) {
    const auto outbox = options.outbox ? fmt::format("{} {}", mine.value(), *options.outbox) : std::string{};
    auto open = local::append_transaction::begin(db, routes, options.clock);
    if (!open) return tl::unexpected(std::move(open.error()));
    publish_outcome outcome;
    for (const auto& [row, batch] : rows) {
        if (stop_at_refusal && !outcome.failures.empty()) {
            outcome.failures.push_back({row->id, purged()});
            continue;
        }
        auto refused = append_row(*open, *row, outbox);
        if (!refused) return tl::unexpected(std::move(refused.error()));
        if (*refused) outcome.failures.push_back({row->id, std::move(**refused)});
    }
    if (outcome.failures.size() == rows.size()) return outcome;  // nothing was added
    if (auto done = open->commit(); !done) return tl::unexpected(std::move(done.error()));
    return outcome;
}

result<publish_outcome> local_sink::impl::publish_main(
    sqlite::database& db, std::uint64_t ticket, const std::vector<outgoing_row>& rows, epoch mine
) {
    expected = std::max(expected, oldest_valid.load());
    if (ticket != expected) {
        publish_outcome outcome;
        for (const auto& one : rows)
            outcome.failures.push_back({one.row->id, purged()});
        return outcome;
    }
    auto outcome = append(db, rows, mine, true);
    if (outcome && outcome->failures.empty()) ++expected;
    return outcome;
}

local_sink::local_sink(host& home, std::string file, local_sink_options options)
    : impl_(std::make_unique<impl>(home, file, std::move(options))) {}

local_sink::~local_sink() = default;

void local_sink::publish(
    channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done
) {
    auto* const me = impl_.get();
    if (where == channel::main) {
        me->thread.run<publish_outcome>(
            [me, ticket = me->next_ticket++, rows = std::move(rows), mine](sqlite::database& db) {
                return me->publish_main(db, ticket, rows, mine);
            },
            std::move(done)
        );
    } else {
        me->thread.run<publish_outcome>(
            [me, rows = std::move(rows), mine](sqlite::database& db) {
                return me->append(db, rows, mine, false);
            },
            std::move(done)
        );
    }
}

void local_sink::reset_main(completion<void> done) {
    impl_->oldest_valid.store(impl_->next_ticket);
    // Jobs run in order: when this one runs, none of the old channel is left.
    impl_->thread.run<void>(
        [](sqlite::database&) { return result<void>{}; },
        [done](result<void> ran) {
            // Also where the file could not be opened, nothing more is published.
            const bool cancelled = !ran && ran.error().code == errc::cancelled;
            done(cancelled ? std::move(ran) : result<void>{});
        }
    );
}

void local_sink::look(completion<void> done, std::string stream) {
    impl_->thread.run<void>(
        [name = std::move(stream)](sqlite::database& db) -> result<void> {
            if (name.empty()) return {};
            const auto found = local::find_stream(db, name);
            if (!found) return tl::unexpected(found.error());
            return {};
        },
        std::move(done)
    );
}

std::optional<error> local_sink::suspect(const outbox_row& row) const {
    return refusal(row, impl_->options.limits);
}

event_sink::capacity local_sink::limits() const {
    const auto& o = impl_->options;
    return {o.request_rows_max, o.request_bytes_max, o.requests_in_flight_max};
}

}  // namespace millrace
