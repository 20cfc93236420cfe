#include "figures.hpp"

#include <chrono>

namespace millrace::app {

namespace {

figure gauge(std::string_view name, std::string_view help, double value) {
    return {name, help, false, value};
}
figure gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    return gauge(name, help, static_cast<double>(value));
}
figure gauge(std::string_view name, std::string_view help, std::optional<double> value) {
    return {name, help, false, value};
}
figure total(std::string_view name, std::string_view help, std::uint64_t value) {
    return {name, help, true, static_cast<double>(value)};
}

double seconds(nanoseconds span) {
    return std::chrono::duration<double>(span).count();
}

}  // namespace

std::vector<figure> figures_of(const relay_status& s) {
    const auto of_look = [&](auto read) {
        return s.outbox ? std::optional<double>(read(*s.outbox)) : std::nullopt;
    };
    return {
        gauge("leading", "1 while this relay holds the lease of the outbox", s.leading ? 1.0 : 0.0),
        gauge("epoch", "Epoch of the present or latest lease", s.epoch.value()),
        total("published_total", "Rows handed to the sink", s.published),
        total("acknowledged_total", "Rows acknowledged by the sink", s.acknowledged),
        total("deleted_total", "Rows delivered and gone from the outbox", s.deleted),
        total("retried_total", "Rows sent again", s.retried),
        total("parked_total", "Rows moved to the dead letters", s.buried),
        gauge("in_flight", "Rows handed to the sink and not yet acknowledged", s.in_flight),
        gauge(
            "duplicates_at_risk", "Rows that a crash now would publish again, at most", s.duplicates_at_risk
        ),
        gauge("memory_bytes", "Bytes of rows in memory", s.bytes_in_memory),
        gauge("gaps", "Ranges of ids that may still be filled", s.gaps),
        gauge("awaiting", "Rows that wait for a schema, with those behind them in their lanes", s.awaiting),
        gauge(
            "backlog",
            "Rows in the outbox, estimated from the span of their ids",
            of_look([](const outbox_look& l) { return static_cast<double>(l.backlog); })
        ),
        gauge(
            "oldest_age_seconds",
            "Age of the row of the lowest id; 0 when there is none",
            of_look([](const outbox_look& l) { return seconds(l.oldest_age.value_or(nanoseconds{0})); })
        ),
        gauge(
            "low_water_holders",
            "Transactions that could still fill a gap, 10 at most",
            of_look([](const outbox_look& l) { return static_cast<double>(l.holders.size()); })
        ),
    };
}

std::vector<figure> figures_of(const schema_status& s) {
    return {
        total("requests_total", "Requests to the schema registry", s.requests),
        total("answers_total", "Schemas that came", s.answers),
        gauge("cached", "Schemas in memory, by subject and version", s.cached),
        gauge("cached_bytes", "Bytes of them, with what was made of them", s.cached_bytes),
        gauge("wanted", "Schemas that are waited for", s.wanted),
        total("stale_uses_total", "Uses of a latest version whose time was over", s.stale_uses),
        total("dropped_total", "Schemas that had to go for others", s.dropped),
        gauge("trouble", "1 while the registry gives no schemas", s.trouble.empty() ? 0.0 : 1.0),
    };
}

std::vector<figure> figures_of(const consumer_status& s) {
    return {
        gauge("shards", "Shards held now", std::uint64_t{s.shards}),
        gauge("worker_index", "Place of this worker among the live ones", std::uint64_t{s.index}),
        gauge("workers", "Live workers; 0 before the first listing", std::uint64_t{s.total}),
        total("reads_total", "Requests for records, also those that failed", s.reads),
        total(
            "reads_throttled_total", "Of them and of openings, those that were throttled", s.reads_throttled
        ),
        total(
            "read_failures_total",
            "Of them and of openings, those that failed; throttled ones are not among them",
            s.reads_failed
        ),
        total("records_read_total", "Records read", s.records_read),
        total("bytes_read_total", "Bytes read", s.bytes_read),
        total("aggregates_total", "Aggregates of the Kinesis Producer Library opened", s.aggregates),
        total("sub_records_total", "Records in them, those left out included", s.sub_records),
        total(
            "sub_records_foreign_total",
            "Records in them that were left out: they belong to another shard",
            s.sub_records_foreign
        ),
        total("records_acknowledged_total", "Records acknowledged by the handler", s.records_acknowledged),
        total(
            "records_dead_lettered_total", "Records put away by the failure policy", s.records_dead_lettered
        ),
        total("handler_failures_total", "Calls of the handler that failed", s.handler_failures),
        {"handler_seconds_total", "Time of all calls of the handler", true, seconds(s.handler_time)},
        total("checkpoints_total", "Checkpoints written", s.checkpoints_written),
        total("leases_taken_total", "Shards taken", s.leases_taken),
        total("leases_released_total", "Shards given back", s.leases_released),
        total("leases_lost_total", "Shards lost to other workers, or with the session", s.leases_lost),
        total("shards_finished_total", "Shards processed to their end", s.shards_finished),
        total(
            "gaps_reported_total",
            "Leases that found that the stream had dropped records before they were read",
            s.gaps_reported
        ),
        total("shards_stopped_total", "Shards stopped by the failure policy", s.shards_stopped),
        gauge("records_at_risk", "Records acknowledged and not yet in a checkpoint", s.records_at_risk),
        gauge("memory_bytes", "Bytes of records in memory", s.bytes_in_memory),
        gauge(
            "behind_seconds",
            "Age of what was read last against the newest record of its shard, and how long reads have "
            "failed since; the largest of all shards",
            seconds(s.behind)
        ),
        gauge(
            "read_failing_seconds",
            "For how long no read of a shard has succeeded because they fail; the longest",
            seconds(s.failing)
        ),
        gauge(
            "blocked_seconds",
            "For how long a handler has acknowledged nothing of a shard though records wait; the longest",
            seconds(s.blocked)
        ),
        gauge(
            "retention_left_seconds",
            "Until the stream drops the oldest record that is not acknowledged; the least of all shards",
            s.retention_left ? std::optional(seconds(*s.retention_left)) : std::nullopt
        ),
        gauge("idle", "1 at the tip of every shard held", s.idle ? 1.0 : 0.0),
    };
}

std::vector<figure> figures_of(const shard_progress& s) {
    return {
        gauge("epoch", "Epoch of the lease", s.epoch.value()),
        total("reads_total", "Requests for records, also those that failed", s.reads),
        total(
            "reads_throttled_total", "Of them and of openings, those that were throttled", s.reads_throttled
        ),
        total(
            "read_failures_total",
            "Of them and of openings, those that failed; throttled ones are not among them",
            s.reads_failed
        ),
        total("records_read_total", "Records read", s.records_read),
        total("bytes_read_total", "Bytes read", s.bytes_read),
        total("records_acknowledged_total", "Records acknowledged by the handler", s.records_acknowledged),
        gauge(
            "behind_seconds",
            "Age of what was read last against the newest record of the shard, and how long reads have "
            "failed since",
            seconds(s.behind)
        ),
        gauge(
            "read_failing_seconds", "For how long no read has succeeded because they fail", seconds(s.failing)
        ),
        gauge(
            "blocked_seconds",
            "For how long the handler has acknowledged nothing though records wait",
            seconds(s.blocked)
        ),
        gauge(
            "retention_left_seconds",
            "Until the stream drops the oldest record that is not acknowledged",
            s.retention_left ? std::optional(seconds(*s.retention_left)) : std::nullopt
        ),
    };
}

}  // namespace millrace::app
