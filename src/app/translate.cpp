#include "translate.hpp"

#include "schemas_section.hpp"
#include "units.hpp"

#include <fmt/format.h>

namespace millrace::app {

poison_policy policy_of(const std::string& text) {
    if (text == "park-row") return poison_policy::park_row;
    return text == "stop" ? poison_policy::stop : poison_policy::park_key;
}

relay_options relay_options_of(const settings& values) {
    relay_options o;
    o.on_poison = policy_of(values.text("on-poison"));
    o.max_attempts = static_cast<std::uint32_t>(values.count("max-attempts"));
    o.retry_min = values.duration("retry-min");
    o.retry_max = values.duration("retry-max");
    o.fetch_rows = values.count("fetch-rows");
    o.fetch_bytes = values.bytes("fetch-bytes");
    o.window_rows = values.count("window-rows");
    o.window_bytes = values.bytes("window-bytes");
    o.client_window_rows = values.count("client-window-rows");
    o.client_window_bytes = values.bytes("client-window-bytes");
    o.rows_per_second = values.count("rows-per-second");
    o.delete_rows = values.count("delete-rows");
    o.delete_delay = values.duration("delete-delay");
    o.gaps_max = values.count("gaps-max");
    o.probes_in_flight = values.count("probes-in-flight");
    o.poll_min = values.duration("poll-min");
    o.poll_max = values.duration("poll-max");
    o.gap_probe_every = values.duration("gap-probe-every");
    o.sweep_every = values.duration("sweep-every");
    o.sweep_share = values.share("sweep-share");
    o.drain_limit = values.duration("drain-limit");
    return o;
}

relay_settings relay_settings_of(const settings& values) {
    relay_settings out;
    const std::vector<std::string>& outboxes = values.list("outbox");
    if (!outboxes.empty()) {
        out.outbox = outboxes.front();
        out.outboxes.assign(outboxes.begin() + 1, outboxes.end());
    }
    out.sink = values.text("sink");
    out.outbox_id = values.text("outbox-id");
    out.idle_partition = values.duration("idle-partition");
    if (values.schemas() != nullptr) out.schemas = schema_settings_of(*values.schemas());
    out.tuning = relay_options_of(values);
    out.leadership = leadership_options_of(values);
    out.fleet_state = values.text("fleet-state");
    out.fleet = values.text("fleet");
    out.lease = values.duration("lease");
    out.worker = worker_id{values.text("worker")};
    out.once = values.flag("once");
    out.stop_on_signals = true;
    return out;
}

leadership_options leadership_options_of(const settings& values) {
    leadership_options o;
    if (values.text("leader") == "kafka") o.by = leadership_way::kafka_group;
    o.yield_after = values.duration("yield-after");
    o.kafka = values.text("leader-kafka");
    o.group = values.text("leader-group");
    o.topic = values.text("leader-topic");
    o.name = values.text("leader-name");
    o.heartbeat_timeout = values.duration("leader-heartbeat-timeout");
    return o;
}

shard_options shard_options_of(const settings& values) {
    shard_options o;
    const std::string policy = values.text("on-failure");
    if (policy == "stop")
        o.on_failure = failure_policy::stop;
    else if (policy != "retry")
        o.on_failure = failure_policy::dead_letter;
    o.dead_letter_after = static_cast<std::uint32_t>(values.count("dead-letter-after"));
    o.retry_min = values.duration("retry-min");
    o.retry_max = values.duration("retry-max");
    o.batch_records = values.count("batch-records");
    o.read_records = values.count("read-records");
    o.read_bytes = values.bytes("read-bytes");
    o.reads_in_flight = values.count("reads-in-flight");
    o.memory_bytes = values.bytes("memory-bytes");
    o.shard_unacknowledged = values.count("shard-unacknowledged");
    o.read_interval = values.duration("read-interval");
    o.tip_interval = values.duration("tip-interval");
    if (values.has("reads-per-second")) o.reads_per_second = values.count("reads-per-second");
    if (values.has("read-bytes-per-second")) o.read_bytes_per_second = values.bytes("read-bytes-per-second");
    o.backoff_min = values.duration("backoff-min");
    o.backoff_max = values.duration("backoff-max");
    return o;
}

result<group_options> group_options_of(const settings& values) {
    group_options o;
    const std::string start = values.text("start");
    if (start == "latest") {
        o.start = start_policy::latest;
    } else if (start != "trim_horizon") {
        const auto moment = parse_time(start);
        if (!moment) {
            return fail(
                errc::invalid_argument,
                fmt::format(
                    "{}: {} is neither trim_horizon nor latest nor a time in RFC 3339 form, such as "
                    "2026-01-31T12:00:00Z",
                    values.named("start"),
                    in_quotes(start)
                )
            );
        }
        o.start = start_policy::at_timestamp;
        o.start_at = *moment;
    }
    o.tick = values.duration("tick");
    o.shard_list_every = values.duration("shard-list-every");
    o.discover_every = values.duration("discover-every");
    o.checkpoint_every = values.duration("checkpoint-every");
    o.checkpoint_records = values.count("checkpoint-records");
    o.checkpoints_per_second = static_cast<std::uint32_t>(values.count("checkpoints-per-second"));
    o.drain_limit = values.duration("drain-limit");
    o.tidy_after = values.duration("tidy-after");
    o.all_shards = values.flag("all-shards");
    return o;
}

consumer_settings consumer_settings_of(const settings& values) {
    consumer_settings out;
    out.stream = values.text("stream");
    out.group = values.text("group");
    out.state = values.text("state");
    out.worker = worker_id{values.text("worker")};
    out.sharing = group_options_of(values).value();
    out.reading = shard_options_of(values);
    out.dead_letters = dead_letter_url(values);
    out.lease = values.duration("lease");
    out.threads = values.count("threads");
    if (values.has("idle-exit")) out.idle_exit = values.duration("idle-exit");
    out.stop_on_signals = true;
    return out;
}

url outbox_of(const settings& values) {
    return parse_url(values.text("outbox"), url_role::outbox).value();
}

std::string dead_letter_url(const settings& values) {
    constexpr std::string_view head = "dead-letter=";
    const std::string policy = values.text("on-failure");
    return policy.rfind(head, 0) == 0 ? policy.substr(head.size()) : std::string{};
}

void check_url(const settings& values, std::string_view option, url_role role, faults& found) {
    const auto& all = values.list(option);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (const auto parsed = parse_url(all[i], role); !parsed)
            found.add(fmt::format("{}: {}", values.named(option, i), parsed.error().detail));
    }
}

void check_worker(const settings& values, faults& found) {
    if (values.given("worker") && values.text("worker").empty()) {
        found.add(fmt::format("{}: the value is empty", values.named("worker")));
    }
}

}  // namespace millrace::app
