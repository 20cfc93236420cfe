#include "adapters.hpp"
#include "admin_server.hpp"
#include "commands.hpp"
#include "json_text.hpp"
#include "live_line.hpp"
#include "logging.hpp"
#include "output.hpp"
#include "service.hpp"
#include "settings.hpp"
#include "summary.hpp"
#include "text/shell.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/relay.hpp>
#include <millrace/url.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::app {

namespace {

using kind = option_kind;

constexpr milliseconds paused_wait = std::chrono::seconds{5};

option_spec outboxes_option() {
    option_spec option = outbox_option();
    option.meaning =
        "An outbox, sqlite:PATH or postgresql://HOST/DATABASE[?table=SCHEMA.NAME]; may be repeated";
    option.many = true;
    return option;
}

std::vector<option_spec> relay_flags() {
    std::vector<option_spec> options{
        outboxes_option(),
        {.name = "sink",
         .placeholder = "URL",
         .meaning = "Where events go, local:PATH, kafka://HOST:PORT[,HOST:PORT...][?PROPERTY=VALUE] or "
                    "kinesis://REGION[/STREAM]; the topic of an event names the stream or topic",
         .example = "local:streams.db",
         .required = true},
        {.name = "outbox-id",
         .kind = kind::name,
         .placeholder = "ID",
         .meaning =
             "Give each record the header millrace-outbox, EPOCH ID; the same in all relays of the outbox",
         .example = "shop"},
        {.name = "once",
         .kind = kind::flag,
         .fallback = "false",
         .meaning =
             "Stop when no deliverable row is left; exit 1 if any was parked or left. While another relay "
             "leads, wait until the outbox is empty",
         .in_file = false},
        {.name = "json",
         .kind = kind::flag,
         .fallback = "false",
         .meaning = "Print the counts at the end as JSON",
         .in_file = false},
        {.name = "worker",
         .kind = kind::name,
         .placeholder = "ID",
         .meaning = "Name of this relay; made from host, process and a random number by default",
         .example = "relay-1"},
        {.name = "lease",
         .kind = kind::duration,
         .placeholder = "TIME",
         .fallback = "5s",
         .meaning = "A waiting relay takes over from a dead one in this time",
         .least = "500ms",
         .most = "10m"},
        {.name = "drain-limit",
         .kind = kind::duration,
         .placeholder = "TIME",
         .fallback = "5s",
         .meaning = "Longest wait for what is in flight when stopping",
         .least = "0s",
         .most = "10m"},
        poison_option(),
        {.name = "max-attempts",
         .kind = kind::count,
         .placeholder = "N",
         .fallback = "0",
         .meaning = "Refusals that may mend, before the policy applies; 0 is for ever",
         .most = "1000000"},
    };
    return options;
}

void add_leader_options(std::vector<option_spec>& options) {
    options.push_back(
        {.name = "leader",
         .kind = kind::choice,
         .placeholder = "WAY",
         .fallback = "lease",
         .meaning = "How relays agree on who leads: a lease in the outbox's database, or the group protocol "
                    "of goharvest on Kafka",
         .choices = "lease|kafka"}
    );
    options.push_back(time_option(
        "yield-after",
        "30s",
        "1s",
        "1h",
        "A leader gives way to a waiting relay after so long without an answer"
    ));
    options.push_back(
        {.name = "leader-group",
         .kind = kind::name,
         .placeholder = "NAME",
         .meaning = "Group of --leader kafka, goharvest's leaderGroupID; of this outbox's relays alone",
         .example = "shop-relay"}
    );
    options.push_back(
        {.name = "leader-topic",
         .kind = kind::name,
         .placeholder = "TOPIC",
         .meaning = "Topic of --leader kafka, goharvest's leaderTopic; the group's name and .neli by default",
         .example = "shop-relay.neli"}
    );
    options.push_back(
        {.name = "leader-kafka",
         .placeholder = "URL",
         .meaning = "Cluster of --leader kafka; the sink's by default",
         .example = "kafka://localhost:9092"}
    );
    options.push_back(
        {.name = "leader-name",
         .kind = kind::name,
         .placeholder = "NAME",
         .meaning = "Name in the heartbeats of --leader kafka, without %; that of the relay by default",
         .example = "relay-1"}
    );
    options.push_back(time_option(
        "leader-heartbeat-timeout",
        "5s",
        "1s",
        "5m",
        "A leader of --leader kafka stops after so long without its own heartbeat; after three times this, "
        "another takes over"
    ));
    options.push_back(
        {.name = "fleet-state",
         .placeholder = "URL",
         .meaning = "Where a fleet of relays shares its outboxes out: a state, as of consume",
         .example = "sqlite:fleet.db"}
    );
    options.push_back(
        {.name = "fleet",
         .kind = kind::name,
         .placeholder = "NAME",
         .fallback = "relays",
         .meaning = "Name of the fleet in that state"}
    );
}

void add_window_options(std::vector<option_spec>& options) {
    options.push_back(count_option("fetch-rows", "8000", "100000", "Rows of one read"));
    options.push_back(bytes_option("fetch-bytes", "3MiB", "Bytes of one read"));
    options.push_back(count_option("window-rows", "20000", "1000000", "Rows read and not yet deleted"));
    options.push_back(bytes_option("window-bytes", "8MiB", "Bytes of rows read and not yet deleted"));
    options.push_back(count_option(
        "client-window-rows", "10000", "1000000", "Rows handed to the sink and not yet acknowledged"
    ));
    options.push_back(
        bytes_option("client-window-bytes", "4MiB", "Bytes handed to the sink and not yet acknowledged")
    );
    options.push_back(
        {.name = "rows-per-second",
         .kind = kind::count,
         .placeholder = "N",
         .fallback = "0",
         .meaning = "Most rows handed to the sink in a second, repeated ones included; 0 is no limit",
         .most = "10000000"}
    );
    options.push_back(time_option(
        "idle-partition",
        "1m",
        "1s",
        "1h",
        "To a partition of Kafka without an acknowledgement for so long, one row goes first; far below the "
        "brokers' producer.id.expiration.ms"
    ));
    options.push_back(count_option(
        "delete-rows", "1000", "100000", "Rows of one DELETE; writers wait no longer than that takes"
    ));
    options.push_back(
        time_option("delete-delay", "20ms", "0s", "10s", "A delivered row is deleted within this time")
    );
    options.push_back(count_option("gaps-max", "1000", "100000", "Gaps among the ids that are kept apart"));
    options.push_back(count_option("probes-in-flight", "16", "1000", "Suspect rows sent alone at a time"));
    options.push_back(time_option(
        "poll-min",
        "1ms",
        "1ms",
        "10s",
        "Pause between reads while rows arrive; up to ten times as long while many do"
    ));
    options.push_back(time_option(
        "poll-max",
        "50ms",
        "1ms",
        "1m",
        "Longest pause between reads while idle; SQLite signals changes, and is read once a second"
    ));
    options.push_back(
        time_option("gap-probe-every", "100ms", "1ms", "1m", "Pause between two looks at skipped ids")
    );
    options.push_back(
        time_option("sweep-every", "1m", "1s", "1d", "Pause between two complete reads from the head")
    );
    options.push_back(
        {.name = "sweep-share",
         .kind = kind::share,
         .placeholder = "SHARE",
         .fallback = "0.1",
         .meaning = "Largest share of time that a complete read may take",
         .least = "0.001",
         .most = "1"}
    );
}

/// A fault of the election, where the name of the library's option stands in it, by that of ours.
std::string placed_of_leader(const settings& values, const std::string& fault) {
    for (const std::string name : {"group", "topic", "name"}) {
        const auto begin = "leadership option " + name + " ";
        if (fault.starts_with(begin))
            return values.named("leader-" + name) + ": it " + fault.substr(begin.size());
    }
    return values.placed(fault);
}

void check_leader(const settings& values, faults& found) {
    const bool by_kafka = values.text("leader") == "kafka";
    if (by_kafka && !values.has("leader-group")) {
        found.add(fmt::format("{}: kafka needs a group; give --leader-group NAME", values.named("leader")));
        return;
    }
    if (!by_kafka) {
        bool stray = false;
        for (const auto* option : {"leader-group", "leader-topic", "leader-kafka", "leader-name"}) {
            if (!values.given(option)) continue;
            stray = true;
            found.add(fmt::format(
                "{}: only of --leader kafka, and this relay would lead by lease; give --leader kafka, or "
                "leave it out",
                values.named(option)
            ));
        }
        if (stray) return;
    }
    if (by_kafka && !values.has("leader-kafka") && values.has("sink") &&
        !values.text("sink").starts_with("kafka:")) {
        found.add(fmt::format(
            "{}: kafka needs brokers, and the sink has none; give --leader-kafka kafka://HOST:PORT",
            values.named("leader")
        ));
    }
    if (by_kafka && values.has("fleet-state")) {
        found.add(
            fmt::format("{}: a fleet shares its outboxes out by leases; leave it out", values.named("leader"))
        );
    }
    const auto valid = leadership_options_of(values).validate();
    if (!valid) found.add(placed_of_leader(values, valid.error().detail));
}

void check_relay(const settings& values, faults& found) {
    check_url(values, "outbox", url_role::outbox, found);
    check_url(values, "sink", url_role::sink, found);
    check_url(values, "leader-kafka", url_role::sink, found);
    check_url(values, "fleet-state", url_role::state, found);
    const auto& outboxes = values.list("outbox");
    for (auto one = outboxes.begin(); one != outboxes.end(); ++one) {
        if (std::find(outboxes.begin(), one, *one) != one)
            found.add(fmt::format(
                "{}: {} is named twice; name it once",
                values.named("outbox"),
                in_quotes(without_secrets(*one))
            ));
    }
    if (outboxes.size() > 1 && values.has("outbox-id")) {
        found.add(fmt::format("{}: of one outbox; there are several", values.named("outbox-id")));
    }
    check_worker(values, found);
    check_admin(values, found);
    if (values.schemas() != nullptr && values.text("sink").starts_with("kinesis:")) {
        found.add(fmt::format(
            "{}: the section schemas is for topics of Kafka; leave it out, or choose another sink",
            values.named("sink")
        ));
    }
    if (values.given("fleet") && !values.has("fleet-state")) {
        found.add(fmt::format(
            "{}: without a state there is no fleet, and this relay would lead every outbox by itself; give "
            "--fleet-state URL, or leave it out",
            values.named("fleet")
        ));
    }
    check_leader(values, found);
    if (const auto valid = relay_options_of(values).validate(); !valid) {
        found.add(values.placed(valid.error().detail));
    }
}

/// The ids that are known, and how many more there are.
std::string named(const std::vector<row_id>& first, std::uint64_t total) {
    std::string ids;
    for (const auto id : first)
        ids += fmt::format("{}{}", ids.empty() ? "" : ", ", id.value());
    return total > first.size() ? fmt::format("{} and {} more", ids, total - first.size()) : ids;
}

std::string parked_text(const relay_status& s, const std::string& outbox) {
    return fmt::format(
        "{} of {} {} parked (id{} {}); see millrace outbox dead list --outbox {}",
        counted(s.buried, "row"),
        outbox,
        s.buried == 1 ? "was" : "were",
        s.buried == 1 ? "" : "s",
        named(s.first_buried, s.buried),
        shell_quoted(outbox)
    );
}

std::string left_text(const relay_status& s, const std::string& outbox) {
    std::string text =
        s.left > 0
            ? fmt::format(
                  "about {} of {} {} left", counted(s.left, "row"), outbox, s.left == 1 ? "was" : "were"
              )
            : fmt::format("rows of {} may be left", outbox);
    if (!s.first_left.empty()) {
        text += fmt::format(
            " (id{} {})",
            s.first_left.size() == 1 ? "" : "s",
            named(s.first_left, std::max<std::uint64_t>(s.left, s.first_left.size()))
        );
    }
    if (s.acknowledged > s.deleted) {
        text += fmt::format(
            ", {} of them published and not deleted, so they will be repeated", s.acknowledged - s.deleted
        );
    }
    return text + (s.last_error ? ": " + s.last_error->detail : "");
}

/// What ends each pause: of all of the outbox, or of each topic.
std::vector<std::string> resume_commands(const std::string& outbox, const outbox_stats& stats) {
    const auto all = fmt::format("millrace outbox resume --outbox {}", shell_quoted(outbox));
    if (stats.paused) return {all};
    std::vector<std::string> each;
    each.reserve(stats.paused_topics.size());
    for (const auto& topic : stats.paused_topics)
        each.push_back(fmt::format("{} --topic {}", all, shell_quoted(topic)));
    return each;
}

/// Rows that no relay reads for now. Asked for when everything else is delivered.
result<std::string> paused_text(const url& outbox) {
    const auto admin = open_outbox_admin(outbox, paused_wait);
    if (!admin) return tl::unexpected(admin.error());
    const auto stats = (*admin)->stats();
    if (!stats) return tl::unexpected(stats.error());
    if (stats->backlog == 0 || (!stats->paused && stats->paused_topics.empty())) return std::string{};
    return fmt::format(
        "{} of {} {}, because {} paused; see {}",
        counted(stats->backlog, "row"),
        outbox.given,
        stats->backlog == 1 ? "waits" : "wait",
        stats->paused ? "it is"
                      : fmt::format(
                            "{} {} {}",
                            stats->paused_topics.size() == 1 ? "topic" : "topics",
                            fmt::join(stats->paused_topics, ", "),
                            stats->paused_topics.size() == 1 ? "is" : "are"
                        ),
        fmt::join(resume_commands(outbox.given, *stats), ", ")
    );
}

/// `outboxes` in the order of the option.
exit_status summarise_once(const settings& values, const std::vector<relay_status>& outboxes) {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < outboxes.size(); ++i) {
        const auto& s = outboxes[i];
        if (s.buried > 0) found.push_back(parked_text(s, s.address));
        if (s.ended == once_end::gave_up) found.push_back(left_text(s, s.address));
        if (s.ended != once_end::nothing_left) continue;
        const auto where = parse_url(values.list("outbox")[i], url_role::outbox);
        auto paused = where ? paused_text(*where) : tl::unexpected(where.error());
        if (!paused) return complain(paused.error());
        if (!paused->empty()) found.push_back(std::move(*paused));
    }
    if (found.empty()) return exit_status::done;
    return complain(error{
        errc::refused_record, retry_advice::never, false, fmt::format("{}", fmt::join(found, "; "))});
}

std::string counts_json(const relay_status& s) {
    return fmt::format(R"("delivered":{},"parked":{},"retried":{})", s.deleted, s.buried, s.retried);
}

/// Of several, also each.
std::string summary_json(
    const relay_status& sum, const std::vector<relay_status>& outboxes, const work_time& work
) {
    std::string each;
    for (const auto& s : outboxes) {
        each += each.empty() ? ",\"outboxes\":[" : ",";
        each += fmt::format(R"({{"outbox":{},{}}})", json_string(s.address), counts_json(s));
    }
    if (!each.empty()) each += "]";
    return fmt::format(
        "{{{},{}{}}}\n", counts_json(sum), pace_json(work), outboxes.size() > 1 ? each : std::string{}
    );
}

exit_status summarise(
    const settings& values,
    const relay_status& s,
    const std::vector<relay_status>& outboxes,
    const work_time& work
) {
    const exit_status printed = print(
        values.flag("json") ? summary_json(s, outboxes, work)
                            : fmt::format(
                                  "delivered {}{}{}\n",
                                  counted(s.deleted, "event"),
                                  pace_text(work),
                                  s.buried > 0 ? fmt::format(", parked {}", s.buried) : ""
                              )
    );
    if (printed != exit_status::done || !values.flag("once")) return printed;
    return summarise_once(values, outboxes);
}

exit_status run_relay(const settings& values) {
    const std::unique_ptr<program_log> log = make_log(values.text("log-level"), values.text("log-format"));
    live_line line;
    work_time work(work_time::clock::now());
    service watched(service::kind::relay, service::silence_limit(values.duration("lease")));
    watched.count_dropped_lines([&] { return log->dropped(); });
    relay_settings set = relay_settings_of(values);
    set.log = log.get();
    const relay* running = nullptr;
    set.on_progress = [&](const relay_status& s) {
        work.note(s.deleted, work_time::clock::now());
        line.show(
            {.done = s.deleted,
             .what = s.leading ? "delivered" : "delivered, waiting for the lease",
             .backlog = s.leading && s.outbox ? std::optional(s.outbox->backlog) : std::nullopt}
        );
        watched.update(s, running->outboxes());
    };
    const auto admin = start_admin(values, watched, *log);
    if (!admin) return complain(admin.error());
    relay job(std::move(set));
    running = &job;
    const result<relay_status> ended = job.run();
    log->flush();
    line.clear();
    if (!ended) return complain(ended.error());
    return summarise(values, *ended, job.outboxes(), work);
}

}  // namespace

void add_relay_commands(std::vector<command_spec>& list) {
    std::vector<option_spec> options = relay_flags();
    add_leader_options(options);
    add_retry_options(options);
    add_window_options(options);
    add_process_options(options);
    list.push_back(
        {.path = "relay",
         .about = "Move events from an outbox to a sink",
         .example = "millrace relay --outbox postgresql://localhost/shop --sink kafka://localhost:9092",
         .options = std::move(options),
         .check = check_relay,
         .run = run_relay,
         .configurable = true,
         .takes_schemas = true}
    );
}

}  // namespace millrace::app
