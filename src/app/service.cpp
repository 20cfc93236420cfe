#include "service.hpp"

#include "json_text.hpp"

#include <fmt/format.h>

namespace millrace::app {

namespace {

metric gauge(std::string name, std::string help, double value) {
    return {std::move(name), std::move(help), value, false};
}
metric gauge(std::string name, std::string help, std::uint64_t value) {
    return gauge(std::move(name), std::move(help), static_cast<double>(value));
}
metric total(std::string name, std::string help, std::uint64_t value) {
    return {std::move(name), std::move(help), static_cast<double>(value), true};
}

std::vector<metric> metrics_of(const relay_status& s) {
    std::vector<metric> all{
        gauge("leading", "1 while this relay holds the lease of the outbox", s.leading ? 1.0 : 0.0),
        gauge("epoch", "Epoch of the present or latest lease", s.epoch.value()),
        total("published_total", "Rows handed to the sink", s.published),
        total("acknowledged_total", "Rows acknowledged by the sink", s.acknowledged),
        total("deleted_total", "Rows delivered and gone from the outbox", s.deleted),
        total("retried_total", "Rows sent again", s.retried),
        total("parked_total", "Rows moved to the dead letters", s.buried),
        gauge("in_flight", "Rows handed to the sink and not yet acknowledged", s.in_flight),
        gauge("gaps", "Ranges of ids that may still be filled", s.gaps),
        gauge(
            "duplicates_at_risk", "Rows that a crash now would publish again, at most", s.duplicates_at_risk
        ),
        gauge("memory_bytes", "Bytes of rows in memory", s.bytes_in_memory),
    };
    if (s.outbox) {
        all.push_back(
            gauge("backlog", "Rows in the outbox, estimated from the span of their ids", s.outbox->backlog)
        );
        all.push_back(gauge(
            "oldest_age_seconds",
            "Age of the row of the lowest id; 0 when there is none",
            std::chrono::duration<double>(s.outbox->oldest_age.value_or(nanoseconds{0})).count()
        ));
    }
    return all;
}

std::vector<metric> metrics_of(const consumer_status& s) {
    return {
        gauge("shards", "Shards held now", std::uint64_t{s.shards}),
        gauge("worker_index", "Place of this worker among the live ones", std::uint64_t{s.index}),
        gauge("workers", "Live workers; 0 before the first listing", std::uint64_t{s.total}),
        total("records_read_total", "Records read", s.records_read),
        total("bytes_read_total", "Bytes read", s.bytes_read),
        total("records_acknowledged_total", "Records acknowledged by the handler", s.records_acknowledged),
        total(
            "records_dead_lettered_total", "Records put away by the failure policy", s.records_dead_lettered
        ),
        total("handler_failures_total", "Calls of the handler that failed", s.handler_failures),
        total(
            "gaps_reported_total", "Records that the stream dropped before they were read", s.gaps_reported
        ),
        total("shards_stopped_total", "Shards stopped by the failure policy", s.shards_stopped),
        gauge("records_at_risk", "Records acknowledged and not yet in a checkpoint", s.records_at_risk),
        gauge("memory_bytes", "Bytes of records in memory", s.bytes_in_memory),
        gauge(
            "behind_seconds",
            "Age of what was read last against the newest record of its shard; the largest of all shards",
            std::chrono::duration<double>(s.behind).count()
        ),
        gauge("idle", "1 at the tip of every shard held", s.idle ? 1.0 : 0.0),
    };
}

}  // namespace

service::service(kind what) {
    if (what == kind::consumer) latest_ = consumer_status{};
}

void service::update(const relay_status& now) {
    const std::lock_guard lock(turn_);
    latest_ = now;
    seen_ = true;
}

void service::update(const consumer_status& now) {
    const std::lock_guard lock(turn_);
    latest_ = now;
    seen_ = now.total > 0 || now.shards > 0;
}

bool service::ready() const {
    const std::lock_guard lock(turn_);
    return seen_;
}

std::vector<metric> service::metrics() const {
    const std::lock_guard lock(turn_);
    std::vector<metric> out = std::visit([](const auto& s) { return metrics_of(s); }, latest_);
    const std::string prefix = latest_.index() == 0 ? "millrace_relay_" : "millrace_consumer_";
    for (metric& m : out)
        m.name.insert(0, prefix);
    out.push_back(gauge("millrace_ready", "1 when /readyz says yes", seen_ ? 1.0 : 0.0));
    return out;
}

std::string service::status_json() const {
    std::string out = "{";
    for (const metric& m : metrics()) {
        if (out.size() > 1) out += ',';
        out += fmt::format("\"{}\":{:.0f}", m.name.substr(m.name.find('_') + 1), m.value);
    }
    const std::lock_guard lock(turn_);
    if (const auto* relay = std::get_if<relay_status>(&latest_); relay != nullptr && relay->last_error) {
        const error& why = *relay->last_error;
        out += ",\"relay_last_error\":" + json_string(fmt::format("{}: {}", name_of(why.code), why.detail));
    }
    return out + "}\n";
}

}  // namespace millrace::app
