#include "admin_server.hpp"
#include "commands.hpp"
#include "live_line.hpp"
#include "logging.hpp"
#include "output.hpp"
#include "print_handler.hpp"
#include "process_identity.hpp"
#include "service.hpp"
#include "settings.hpp"
#include "summary.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/consumer.hpp>
#include <millrace/url.hpp>

#include <random>

#include <fmt/format.h>
#include <unistd.h>

namespace millrace::app {

namespace {

using kind = option_kind;

std::vector<option_spec> consume_flags() {
    return {
        stream_option(),
        group_option(),
        state_option(),
        {.name = "worker",
         .kind = kind::name,
         .placeholder = "ID",
         .meaning = "Name of this worker; made from host, process and a random number by default",
         .example = "worker-1"},
        {.name = "start",
         .placeholder = "WHERE",
         .fallback = "trim_horizon",
         .meaning = "Where the group begins at its first start: trim_horizon, latest or an RFC 3339 time",
         .example = "2026-01-31T12:00:00Z"},
        {.name = "print",
         .kind = kind::flag,
         .fallback = "false",
         .meaning = "Print each record as a line of JSON; without it, records are only counted"},
        {.name = "json",
         .kind = kind::flag,
         .fallback = "false",
         .meaning = "Print the counts at the end as JSON; what --print prints is JSON anyway",
         .in_file = false},
        {.name = "all-shards",
         .kind = kind::flag,
         .fallback = "false",
         .meaning = "Take every shard in one process, without a session"},
        {.name = "on-failure",
         .kind = kind::choice,
         .placeholder = "POLICY",
         .fallback = "retry",
         .meaning = "What becomes of a record that fails: retry, stop the shard, or put it away at a URL",
         .choices = "retry|stop|dead-letter=URL"},
        {.name = "dead-letter-after",
         .kind = kind::count,
         .placeholder = "N",
         .fallback = "3",
         .meaning = "Tries before a record is put away",
         .least = "1",
         .most = "1000000"},
        {.name = "idle-exit",
         .kind = kind::seconds,
         .placeholder = "SECONDS",
         .meaning =
             "Stop when all shards are at the tip for so long; with status 1 when nothing could be done "
             "for so long and 30s; off by default",
         .most = "30d",
         .example = "5s"},
        time_option("lease", "10s", "500ms", "10m", "The shards of a dead worker move after this time"),
        time_option("drain-limit", "10s", "0s", "10m", "Longest wait for records in work when stopping"),
        {.name = "threads",
         .kind = kind::count,
         .placeholder = "N",
         .fallback = "0",
         .meaning = "Threads that handle records; 0 is four, or as many as there are cores",
         .most = "256"},
    };
}

void add_reading_options(std::vector<option_spec>& options) {
    options.push_back(count_option("batch-records", "1000", "1000000", "Records handled at once"));
    options.push_back(count_option("read-records", "10000", "1000000", "Records of one read"));
    options.push_back(bytes_option("read-bytes", "1MiB", "Bytes of one read"));
    options.push_back(
        count_option("reads-in-flight", "32", "1000", "Requests to the stream at a time, over all shards")
    );
    options.push_back(
        bytes_option("memory-bytes", "16MiB", "Bytes of all records read and not yet acknowledged")
    );
    options.push_back(count_option(
        "shard-unacknowledged", "50000", "10000000", "Records of one shard that wait for acknowledgement"
    ));
    options.push_back(
        time_option("read-interval", "0s", "0s", "1m", "Shortest time between two reads of a shard")
    );
    options.push_back(
        {.name = "reads-per-second",
         .kind = option_kind::count,
         .placeholder = "N",
         .meaning =
             "Reads of a shard in a second; 0 is no limit. Without it what the stream allows: 5 for Kinesis",
         .most = "1000",
         .example = "4"}
    );
    options.push_back(
        {.name = "read-bytes-per-second",
         .kind = option_kind::bytes,
         .placeholder = "SIZE",
         .meaning = "Bytes read of a shard in a second; 0 is no limit. Without it what the stream allows: "
                    "2MiB for Kinesis",
         .most = "1GiB",
         .example = "1MiB"}
    );
    options.push_back(time_option(
        "tip-interval", "1s", "1ms", "1s", "Between two reads at the tip, without a change signal"
    ));
    options.push_back(time_option(
        "backoff-min", "100ms", "1ms", "1h", "First pause after a failed read; doubles up to backoff-max"
    ));
    options.push_back(time_option("backoff-max", "10s", "1ms", "1h", "Longest pause after failed reads"));
}

void add_sharing_options(std::vector<option_spec>& options) {
    options.push_back(time_option("tick", "300ms", "10ms", "500ms", "Between two listings of the workers"));
    options.push_back(
        time_option("shard-list-every", "30s", "100ms", "1h", "Between two listings of the leases, at most")
    );
    options.push_back(
        time_option("discover-every", "30s", "100ms", "1h", "Between two listings of the shards, at most")
    );
    options.push_back(time_option(
        "checkpoint-every",
        "1s",
        "1ms",
        "1h",
        "Age at which an acknowledgement is written: what a crash repeats"
    ));
    options.push_back(count_option(
        "checkpoint-records", "10000", "1000000000", "So many unwritten acknowledgements are written at once"
    ));
    options.push_back(
        count_option("checkpoints-per-second", "200", "100000", "Writes of checkpoints, over all shards")
    );
    options.push_back(time_option(
        "tidy-after", "1h", "1m", "365d", "The lease of a finished shard that is gone is kept so long"
    ));
}

void check_consume(const settings& values, faults& found) {
    check_url(values, "stream", url_role::stream, found);
    check_url(values, "state", url_role::state, found);
    check_worker(values, found);
    check_admin(values, found);
    if (values.flag("print") && values.flag("json")) found.add("--print and --json exclude each other");
    if (const std::string url = dead_letter_url(values); !url.empty()) {
        if (const auto parsed = parse_url(url, url_role::dead_letters); !parsed) {
            found.add(fmt::format("{}: {}", values.named("on-failure"), parsed.error().detail));
        }
    }
    if (const auto valid = shard_options_of(values).validate(); !valid) {
        found.add(values.placed(valid.error().detail));
    }
    const auto sharing = group_options_of(values);
    if (!sharing) return found.add(sharing.error());
    if (const auto valid = sharing->validate(); !valid) {
        found.add(values.placed(valid.error().detail));
    }
}

/// Counts what comes, and nothing else.
class count_handler final : public record_handler {
public:
    result<handled> handle(const std::shared_ptr<const record_batch>&, const delivery&) override {
        return handled::all;
    }
};

std::string counts_text(const consumer_status& s, const work_time& work) {
    std::string out = counted(s.records_acknowledged, "record") + pace_text(work);
    if (s.gaps_reported > 0) out += fmt::format("; {} in the stream", counted(s.gaps_reported, "gap"));
    return out + "\n";
}

std::string counts_json(const consumer_status& s, const work_time& work) {
    return fmt::format(
        R"({{"records":{},"bytes":{},"gaps":{},{}}})"
        "\n",
        s.records_acknowledged,
        s.bytes_read,
        s.gaps_reported,
        pace_json(work)
    );
}

exit_status summarise(const settings& values, const consumer_status& s, const work_time& work) {
    if (!values.flag("print")) {
        const auto printed = print(values.flag("json") ? counts_json(s, work) : counts_text(s, work));
        if (printed != exit_status::done) return printed;
    }
    if (s.shards_stopped == 0) return exit_status::done;
    return complain(error{
        errc::handler_failed,
        retry_advice::never,
        false,
        fmt::format(
            "{} of {} {} stopped by --on-failure stop",
            counted(s.shards_stopped, "shard"),
            values.text("stream"),
            s.shards_stopped == 1 ? "was" : "were"
        )});
}

exit_status run_consume(const settings& values) {
    const std::unique_ptr<program_log> log = make_log(values.text("log-level"), values.text("log-format"));
    live_line line;
    work_time work(work_time::clock::now());
    service watched(service::kind::consumer, service::silence_limit(values.duration("lease")));
    watched.count_dropped_lines([&] { return log->dropped(); });
    consumer_settings set = consumer_settings_of(values);
    if (set.worker.value().empty()) set.worker = default_worker_id(this_process(), std::random_device{}());
    const std::string worker = set.worker.value();
    set.log = log.get();
    set.on_progress = [&](const consumer_status& s) {
        work.note(s.records_acknowledged, work_time::clock::now());
        const bool known = s.shards > 0 && (s.idle || s.behind.count() > 0);
        line.show(
            {.done = s.records_acknowledged,
             .what = "records",
             .shards = s.shards,
             .behind = known ? std::optional(s.idle ? milliseconds{0} : s.behind) : std::nullopt}
        );
        watched.update(s);
    };
    const auto admin = start_admin(values, watched, *log);
    if (!admin) return complain(admin.error());

    consumer* running = nullptr;
    count_handler count;
    print_handler printer(
        STDOUT_FILENO,
        parse_url(values.text("stream"), url_role::stream).value().stream,
        worker,
        [&](error why) { running->abort(std::move(why)); }
    );
    record_handler& handler =
        values.flag("print") ? static_cast<record_handler&>(printer) : static_cast<record_handler&>(count);
    consumer job(std::move(set), handler);
    running = &job;
    const result<consumer_status> ended = job.run();
    log->flush();
    line.clear();
    if (!ended) return complain(ended.error());
    return summarise(values, *ended, work);
}

}  // namespace

void add_consume_commands(std::vector<command_spec>& list) {
    std::vector<option_spec> options = consume_flags();
    add_retry_options(options);
    add_reading_options(options);
    add_sharing_options(options);
    add_process_options(options);
    list.push_back(
        {.path = "consume",
         .about = "Read a stream as one worker of a group",
         .example = "millrace consume --stream local:streams.db/orders --group billing --state "
                    "sqlite:state.db --print",
         .options = std::move(options),
         .check = check_consume,
         .run = run_consume,
         .configurable = true}
    );
}

}  // namespace millrace::app
