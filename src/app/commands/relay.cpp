#include "admin_server.hpp"
#include "commands.hpp"
#include "live_line.hpp"
#include "logging.hpp"
#include "output.hpp"
#include "service.hpp"
#include "settings.hpp"
#include "summary.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/relay.hpp>
#include <millrace/url.hpp>

#include <fmt/format.h>

namespace millrace::app {

namespace {

using kind = option_kind;

std::vector<option_spec> relay_flags() {
    std::vector<option_spec> options{
        outbox_option(),
        {.name = "sink",
         .placeholder = "URL",
         .meaning = "Where events go, local:PATH; the topic of an event names the stream",
         .example = "local:streams.db",
         .required = true},
        {.name = "once",
         .kind = kind::flag,
         .fallback = "false",
         .meaning = "Stop when no deliverable row is left; exit 1 if any was parked",
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
        {.name = "on-poison",
         .kind = kind::choice,
         .placeholder = "POLICY",
         .fallback = "park-key",
         .meaning = "What becomes of a row that the sink will never take",
         .choices = "park-row|park-key|stop"},
        {.name = "max-attempts",
         .kind = kind::count,
         .placeholder = "N",
         .fallback = "0",
         .meaning = "Refusals that may mend, before the policy applies; 0 is for ever",
         .most = "1000000"},
    };
    return options;
}

void add_window_options(std::vector<option_spec>& options) {
    options.push_back(count_option("fetch-rows", "2000", "100000", "Rows of one read"));
    options.push_back(bytes_option("fetch-bytes", "1MiB", "Bytes of one read"));
    options.push_back(count_option("window-rows", "20000", "1000000", "Rows read and not yet deleted"));
    options.push_back(bytes_option("window-bytes", "8MiB", "Bytes of rows read and not yet deleted"));
    options.push_back(count_option(
        "client-window-rows", "10000", "1000000", "Rows handed to the sink and not yet acknowledged"
    ));
    options.push_back(
        bytes_option("client-window-bytes", "4MiB", "Bytes handed to the sink and not yet acknowledged")
    );
    options.push_back(count_option(
        "delete-rows", "1000", "100000", "Rows of one DELETE; writers wait no longer than that takes"
    ));
    options.push_back(
        time_option("delete-delay", "20ms", "0s", "10s", "A delivered row is deleted within this time")
    );
    options.push_back(count_option("gaps-max", "1000", "100000", "Gaps among the ids that are kept apart"));
    options.push_back(count_option("probes-in-flight", "16", "1000", "Suspect rows sent alone at a time"));
    options.push_back(time_option("poll-min", "1ms", "1ms", "10s", "Pause between reads while rows arrive"));
    options.push_back(time_option(
        "poll-max", "50ms", "1ms", "1m", "Pause between reads while idle, without a change signal"
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
         .meaning = "Largest share of time that a complete read may take"}
    );
}

void check_relay(const settings& values, faults& found) {
    check_url(values, "outbox", url_role::outbox, found);
    check_url(values, "sink", url_role::sink, found);
    check_worker(values, found);
    check_admin(values, found);
    if (const auto valid = relay_options_of(values).validate(); !valid) {
        found.add(values.placed(valid.error().detail));
    }
}

exit_status summarise(const settings& values, const relay_status& s, const work_time& work) {
    const exit_status printed = print(
        values.flag("json") ? fmt::format(
                                  R"({{"delivered":{},"parked":{},"retried":{},{}}})"
                                  "\n",
                                  s.deleted,
                                  s.buried,
                                  s.retried,
                                  pace_json(work)
                              )
                            : fmt::format(
                                  "delivered {} event{}{}{}\n",
                                  s.deleted,
                                  s.deleted == 1 ? "" : "s",
                                  pace_text(work),
                                  s.buried > 0 ? fmt::format(", parked {}", s.buried) : ""
                              )
    );
    if (printed != exit_status::done || !values.flag("once") || s.buried == 0) return printed;
    return complain(error{
        errc::refused_record,
        retry_advice::never,
        false,
        fmt::format(
            "{} rows of {} were parked; see millrace outbox dead list --outbox {}",
            s.buried,
            outbox_of(values).given,
            outbox_of(values).given
        )});
}

exit_status run_relay(const settings& values) {
    const std::unique_ptr<log_sink> log = make_log(values.text("log-level"), values.text("log-format"));
    live_line line;
    work_time work(work_time::clock::now());
    service watched(service::kind::relay);
    relay_settings set = relay_settings_of(values);
    set.log = log.get();
    set.on_progress = [&](const relay_status& s) {
        work.note(s.deleted, work_time::clock::now());
        line.show(
            {.done = s.deleted,
             .what = s.leading ? "delivered" : "delivered, waiting for the lease",
             .backlog = s.leading && s.outbox ? std::optional(s.outbox->backlog) : std::nullopt}
        );
        watched.update(s);
    };
    const auto admin = start_admin(values, watched, *log);
    if (!admin) return complain(admin.error());
    relay job(std::move(set));
    const result<relay_status> ended = job.run();
    line.clear();
    if (!ended) return complain(ended.error());
    return summarise(values, *ended, work);
}

}  // namespace

void add_relay_commands(std::vector<command_spec>& list) {
    std::vector<option_spec> options = relay_flags();
    add_retry_options(options);
    add_window_options(options);
    add_process_options(options);
    list.push_back(
        {.path = "relay",
         .about = "Move events from an outbox to a sink",
         .example = "millrace relay --outbox sqlite:shop.db --sink local:streams.db",
         .options = std::move(options),
         .check = check_relay,
         .run = run_relay,
         .configurable = true}
    );
}

}  // namespace millrace::app
