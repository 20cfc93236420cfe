// The reading half of a shard: carries out `shard_reader` on the source, within the memory that is left.
#include "shard_driver_impl.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace millrace {

namespace {

// What fails for less passes, as a restart of the service does; and a reply may take long.
constexpr nanoseconds passes_within = std::chrono::seconds{5};

// For a start that has not come: the clocks may be set meanwhile.
constexpr nanoseconds start_looked_at = std::chrono::seconds{10};

}  // namespace

void shard_driver::impl::read_step(const shard_reader::event& what) {
    const auto out = reader.step(now(), around.loop.random(), what);
    if (out.say != shard_reader::notice::none) report(out.say, std::get<shard_reader::failed>(what).why);
    if (const auto* wait = std::get_if<shard_reader::wait>(&out.next)) {
        read_alarm.set(wait->until, [this] {
            read_step(shard_reader::woken{});
            proceed();
        });
    } else if (const auto* read = std::get_if<shard_reader::read>(&out.next)) {
        to_read = read->cursor;
    } else if (std::holds_alternative<shard_reader::end>(out.next)) {
        read_again();
        gone = gone || out.say == shard_reader::notice::shard_gone;
        work->end_read();
        around.leases.discover_soon();
    } else if (const auto* open = std::get_if<shard_reader::open>(&out.next)) {
        to_open = open->start;
    }
}

// Kinesis refuses a time that has not come by its own clock.
bool shard_driver::impl::awaits_its_start() {
    const auto* const start = std::get_if<from::timestamp>(&*to_open);
    const auto stream = around.leases.stream();
    awaiting = start != nullptr && stream && start->at > stream->now;
    if (!awaiting) return false;
    read_again();  // what failed was asked before the stream's clock was known
    looked_at = now();
    const nanoseconds rest = start->at - stream->now;
    read_alarm.set(now() + std::min<nanoseconds>(rest, start_looked_at), [this] { proceed(); });
    return true;
}

void shard_driver::impl::pump_open() {
    if (!to_open || draining || work->stopped() || awaits_its_start()) return;
    auto room = around.memory.reserve(member, 1);
    if (!room) return;
    asked_at = now();
    around.source.open(
        grant.shard,
        *std::exchange(to_open, std::nullopt),
        alive.guard([this, room = std::move(room)](result<read_cursor> how) { on_open(std::move(how)); })
    );
}

void shard_driver::impl::on_open(result<read_cursor> how) {
    if (how) {
        asked_at.reset();
        read_step(shard_reader::opened{std::move(*how)});
    } else {
        on_failed(std::move(how.error()));
    }
    proceed();
}

void shard_driver::impl::on_failed(error why) {
    if (why.code == errc::throttled) {
        ++around.counters.reads_throttled;
        ++so_far.reads_throttled;
    } else {
        ++around.counters.reads_failed;
        ++so_far.reads_failed;
    }
    failure = why;
    if (!failing_since) failing_since = asked_at;
    asked_at.reset();
    damage = why.code == errc::corrupt ? std::optional(why) : std::nullopt;
    const bool denied = why.code == errc::not_found;
    const bool older = why.code == errc::conflict;  // its position is of an earlier stream of this name
    read_step(shard_reader::failed{std::move(why), denied && around.leases.unlisted(grant.shard)});
    if (denied || older) around.leases.discover_soon();
}

void shard_driver::impl::pump_read() {
    const auto& options = around.options;
    if (!to_read || draining || work->stopped()) return;
    // One read ahead of the handler, so that neither waits for the other.
    if (work->unhanded() >= std::max(options.batch_records, options.read_records / 2)) return;
    if (work->in_window() >= options.shard_unacknowledged) return;
    auto room = around.memory.reserve(member, options.read_bytes);
    if (!room) return;
    const auto records =
        std::min<std::uint64_t>(options.read_records, options.shard_unacknowledged - work->in_window());
    const read_limits limits{static_cast<std::size_t>(records), room->bytes()};
    auto cursor = *std::exchange(to_read, std::nullopt);
    ++around.counters.reads;
    ++so_far.reads;
    asked_at = now();
    around.source.read(
        grant.shard,
        std::move(cursor),
        limits,
        alive.guard([this, sent = now(), room = std::move(room)](result<read_reply> how) {
            on_read(sent, *room, std::move(how));
        })
    );
}

void shard_driver::impl::on_read(mono_time sent, read_memory::reservation& room, result<read_reply> how) {
    if (!how) {
        on_failed(std::move(how.error()));
        return proceed();
    }
    read_again();
    const auto records = how->records->records();
    so_far.behind = how->behind;
    looked_at = sent;
    const auto bytes = how->bytes == 0 ? how->records->bytes() : how->bytes;
    shard_reader::records got{std::move(how->next), std::nullopt, how->behind, sent, bytes};
    if (!records.empty()) {
        got.last = records.back().position;
        around.counters.records_read += records.size();
        around.counters.bytes_read += how->records->bytes();
        so_far.records_read += records.size();
        so_far.bytes_read += how->records->bytes();
        work->push(room.count(std::move(how->records)));
    }
    read_step(got);
    proceed();
}

void shard_driver::impl::read_again() {
    asked_at.reset();
    failing_since.reset();
    failure.reset();
    damage.reset();
}

nanoseconds shard_driver::impl::failing() const {
    if (draining || ending || ended || work->stopped()) return nanoseconds{0};
    if (failing_since) return now() - *failing_since;
    const auto unanswered = asked_at ? now() - *asked_at : nanoseconds{0};
    return unanswered < passes_within ? nanoseconds{0} : unanswered;
}

std::optional<error> shard_driver::impl::trouble() const {
    const auto since = failing();
    if (since < passes_within) return std::nullopt;
    error why = failure.value_or(error{
        errc::unavailable, retry_advice::after_delay, false, "the latest request has not been answered"});
    why.detail = fmt::format(
        "shard {} has not been read for {} s: {}",
        name(),
        std::chrono::floor<std::chrono::seconds>(since).count(),
        why.detail
    );
    return why;
}

void shard_driver::impl::report_gap(const std::string& detail) {
    if (std::exchange(gap_said, true)) return;
    ++around.counters.gaps_reported;
    say(log_level::warning, "shard.gap", detail);
}

void shard_driver::impl::report(shard_reader::notice what, const error& why) {
    switch (what) {
        case shard_reader::notice::none:
            break;
        case shard_reader::notice::gap:
            report_gap(
                "the stream no longer holds the record after the last position (" + why.detail +
                "); reading goes on at the oldest record, and those between are lost to this group"
            );
            break;
        case shard_reader::notice::missing:
            say(log_level::warning,
                "shard.missing",
                fmt::format(
                    "the stream does not have a shard that it lists ({}); the shard is kept and asked for "
                    "again until it answers or is no longer listed",
                    why.detail
                ));
            break;
        case shard_reader::notice::shard_gone:
            say(log_level::error,
                "shard.gone",
                "the stream has deleted or expired the shard before its end was read (" + why.detail +
                    "); it is given back unfinished and read on if it is ever listed again, else what was "
                    "not read of it is lost");
            break;
        case shard_reader::notice::failing:
            // An outage fails all shards at once.
            say_failure(
                why.retry == retry_advice::never ? log_level::error : log_level::warning,
                "shard.read_failing",
                fmt::format(
                    "{}: {}; attempt {} in a row, tried again with back-off",
                    name_of(why.code),
                    why.detail,
                    reader.failures()
                )
            );
            break;
    }
}

}  // namespace millrace
