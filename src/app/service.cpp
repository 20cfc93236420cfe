#include "service.hpp"

#include "figures.hpp"
#include "json_text.hpp"

#include <chrono>
#include <cmath>
#include <iterator>
#include <span>

#include <fmt/format.h>

namespace millrace::app {

namespace {

using labels = std::vector<std::pair<std::string, std::string>>;

double seconds(nanoseconds span) {
    return std::chrono::duration<double>(span).count();
}

/// Adds one source's figures as samples; all sources have the same figures.
void add(std::vector<metric>& all, std::string_view prefix, std::span<const figure> found, const labels& of) {
    for (std::size_t i = 0; i < found.size(); ++i) {
        const figure& f = found[i];
        if (i == all.size())
            all.push_back({fmt::format("{}{}", prefix, f.name), std::string(f.help), f.counter, {}});
        if (f.value) all[i].samples.push_back({of, *f.value});
    }
}

/// Ages are left out where the role may not see them.
void add_holders(metric& transactions, metric& statements, const relay_status& s, const labels& of) {
    if (!s.outbox) return;
    for (const gap_holder& holder : s.outbox->holders) {
        labels with_pid = of;
        with_pid.emplace_back("pid", fmt::format("{}", holder.pid));
        if (holder.transaction_age)
            transactions.samples.push_back({with_pid, seconds(*holder.transaction_age)});
        if (holder.query_age) statements.samples.push_back({std::move(with_pid), seconds(*holder.query_age)});
    }
}

std::string age_json(const std::optional<nanoseconds>& age) {
    return age ? fmt::format("{:.3f}", seconds(*age)) : "null";
}

std::string holders_json(const outbox_look& look) {
    std::string out = "[";
    for (const gap_holder& holder : look.holders) {
        out += fmt::format(
            R"({}{{"pid":{},"transaction_age_s":{},"query_age_s":{}}})",
            out.size() > 1 ? "," : "",
            holder.pid,
            age_json(holder.transaction_age),
            age_json(holder.query_age)
        );
    }
    return out + "]";
}

std::string error_json(const std::optional<error>& why) {
    if (!why) return "null";
    return json_string(fmt::format("{}: {}", name_of(why->code), why->detail));
}

/// `"name":1,...`; what is unknown is null.
std::string figures_json(std::span<const figure> found, std::string_view prefix) {
    std::string out;
    for (const figure& f : found) {
        const bool whole = f.value && *f.value == std::floor(*f.value);
        const auto value = f.value ? fmt::format("{:.{}f}", *f.value, whole ? 0 : 3) : "null";
        out += fmt::format("{}\"{}{}\":{}", out.empty() ? "" : ",", prefix, f.name, value);
    }
    return out;
}

std::string outbox_json(const relay_status& s) {
    return fmt::format(
        R"({{"outbox":{},{},"holders":{},"ready":{},"last_error":{}}})",
        json_string(s.address),
        figures_json(figures_of(s), ""),
        s.outbox ? holders_json(*s.outbox) : "null",
        s.ready ? 1 : 0,
        error_json(s.last_error)
    );
}

std::string schemas_json(const schema_status& s) {
    std::string failures;
    for (const auto& of : s.failed)
        failures += fmt::format("{}{}:{}", failures.empty() ? "" : ",", json_string(of.kind), of.count);
    return fmt::format(
        R"(,"schemas":{{{},"failures":{{{}}},"why":{}}})",
        figures_json(figures_of(s), ""),
        failures,
        s.trouble.empty() ? "null" : json_string(s.trouble)
    );
}

metric schema_failures(const schema_status& s) {
    metric out{
        "millrace_schema_failures_total", "Requests without a schema, by the kind of the failure", true, {}};
    for (const auto& of : s.failed)
        out.samples.push_back({{{"kind", of.kind}}, static_cast<double>(of.count)});
    return out;
}

std::string shard_json(const shard_progress& s) {
    return fmt::format(R"({{"shard":{},{}}})", json_string(s.shard.value()), figures_json(figures_of(s), ""));
}

}  // namespace

void service::update(const relay_status& sum, std::vector<relay_status> outboxes) {
    const std::lock_guard lock(turn_);
    heard_at_ = clock_();
    sum_ = sum;
    outboxes_ = std::move(outboxes);
    seen_ = true;
}

void service::update(const consumer_status& now) {
    const std::lock_guard lock(turn_);
    heard_at_ = clock_();
    consumer_ = now;
    seen_ = now.total > 0 || now.shards > 0;
}

std::string service::not_healthy() const {
    const std::lock_guard lock(turn_);
    return why_not_healthy();
}

std::string service::why_not_healthy() const {
    const auto silent = clock_() - heard_at_;
    if (silent <= silence_) return {};
    return fmt::format(
        "the loop has stood still for {} s; it is stopped, starved or blocked, and may have lost its lease",
        std::chrono::floor<std::chrono::seconds>(silent).count()
    );
}

/// Of a loop that stands still nobody knows whether it still leads.
relay_status service::believed(relay_status s) const {
    s.leading = s.leading && why_not_healthy().empty();
    s.ready = s.ready && why_not_healthy().empty();
    return s;
}

std::string service::not_ready() const {
    const std::lock_guard lock(turn_);
    return why_not_ready();
}

std::string service::why_not_ready() const {
    if (auto why = why_not_healthy(); !why.empty()) return why;
    if (kind_ == kind::consumer && consumer_.trouble) return consumer_.trouble->detail;
    if (!seen_) return "nothing has been heard of the work yet";
    std::string why;
    for (const relay_status& s : outboxes_) {
        if (s.ready) continue;
        why += why.empty() ? "" : "; ";
        if (outboxes_.size() > 1) why += s.address + ": ";
        why += s.last_error ? s.last_error->detail : s.not_ready;
    }
    return why;
}

std::vector<metric> service::metrics() const {
    const std::lock_guard lock(turn_);
    std::vector<metric> all;
    if (kind_ == kind::consumer) {
        add(all, "millrace_consumer_", figures_of(consumer_), {});
        std::vector<metric> of_shards;
        for (const shard_progress& s : consumer_.progress)
            add(of_shards, "millrace_shard_", figures_of(s), {{"shard", s.shard.value()}});
        std::move(of_shards.begin(), of_shards.end(), std::back_inserter(all));
    } else if (outboxes_.empty()) {
        add(all, "millrace_relay_", figures_of(believed(sum_)), {});
    } else {
        metric transactions{
            "millrace_relay_low_water_holder_seconds",
            "Age of a transaction that could still fill a gap",
            false,
            {}};
        metric statements{
            "millrace_relay_low_water_holder_query_seconds",
            "Time since the present or latest statement of such a transaction began",
            false,
            {}};
        for (const relay_status& s : outboxes_) {
            const labels of = outboxes_.size() > 1 ? labels{{"outbox", s.address}} : labels{};
            add(all, "millrace_relay_", figures_of(believed(s)), of);
            add_holders(transactions, statements, s, of);
        }
        all.push_back(std::move(transactions));
        all.push_back(std::move(statements));
    }
    if (sum_.schemas) {
        std::vector<metric> of_schemas;
        add(of_schemas, "millrace_schema_", figures_of(*sum_.schemas), {});
        std::move(of_schemas.begin(), of_schemas.end(), std::back_inserter(all));
        all.push_back(schema_failures(*sum_.schemas));
    }
    all.push_back(
        {"millrace_ready", "1 when /readyz says yes", false, {{{}, why_not_ready().empty() ? 1.0 : 0.0}}}
    );
    if (dropped_lines_) {
        all.push_back(
            {"millrace_log_lines_dropped_total",
             "Log lines that standard error did not take in time",
             true,
             {{{}, static_cast<double>(dropped_lines_())}}}
        );
    }
    return all;
}

std::string service::status_json() const {
    const std::lock_guard lock(turn_);
    const int ready = why_not_ready().empty() ? 1 : 0;
    if (kind_ == kind::consumer) {
        std::string shards;
        for (const shard_progress& s : consumer_.progress)
            shards += (shards.empty() ? "" : ",") + shard_json(s);
        return fmt::format(
            "{{{},\"consumer_last_error\":{},\"ready\":{},\"shards\":[{}]}}\n",
            figures_json(figures_of(consumer_), "consumer_"),
            error_json(consumer_.trouble),
            ready,
            shards
        );
    }
    std::string outboxes;
    for (const relay_status& s : outboxes_)
        outboxes += (outboxes.empty() ? "" : ",") + outbox_json(believed(s));
    return fmt::format(
        "{{{},\"relay_last_error\":{},\"ready\":{},\"outboxes\":[{}]{}}}\n",
        figures_json(figures_of(believed(sum_)), "relay_"),
        error_json(sum_.last_error),
        ready,
        outboxes,
        sum_.schemas ? schemas_json(*sum_.schemas) : ""
    );
}

}  // namespace millrace::app
