#include "adapters.hpp"
#include "commands.hpp"
#include "json_text.hpp"
#include "output.hpp"
#include "put.hpp"
#include "settings.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/url.hpp>

#include <chrono>
#include <optional>

#include <fmt/format.h>

namespace millrace::app {

namespace {

void check_outbox(const settings& values, faults& found) {
    check_url(values, "outbox", url_role::outbox, found);
}

exit_status init(const settings& values) {
    const url where = outbox_of(values);
    if (values.flag("print")) {
        const auto script =
            outbox_script(where, {.writer = values.text("writer-role"), .relay = values.text("relay-role")});
        return script ? print(*script) : complain(script.error());
    }
    if (const auto made = init_outbox(where, wait_of(values)); !made) return complain(made.error());
    return print(fmt::format("{} is ready\n", where.given));
}

void check_outbox_put(const settings& values, faults& found) {
    check_outbox(values, found);
    check_put(values, found);
}

exit_status put_outbox(const settings& values) {
    const auto admin = open_outbox_admin(outbox_of(values), wait_of(values), file_use::append);
    if (!admin) return complain(admin.error());
    return run_put(values, {}, [&](std::span<const event> events) -> result<void> {
        if (const auto put = (*admin)->put(events); !put) return tl::unexpected(put.error());
        return {};
    });
}

std::string paused_text(const outbox_stats& stats) {
    if (stats.paused) return "all";
    if (stats.paused_topics.empty()) return "-";
    return fmt::format("{}", fmt::join(stats.paused_topics, " "));
}

std::string stats_json(const outbox_stats& stats) {
    std::string topics;
    for (const std::string& topic : stats.paused_topics)
        topics += (topics.empty() ? "" : ",") + json_string(topic);
    return fmt::format(
        R"({{"backlog":{},"oldest_age_s":{},"dead":{},"parked_keys":{},"paused":{},"paused_topics":[{}]}})"
        "\n",
        stats.backlog,
        stats.oldest_age ? fmt::format("{:.3f}", std::chrono::duration<double>(*stats.oldest_age).count())
                         : "null",
        stats.dead,
        stats.parked_lanes,
        stats.paused,
        topics
    );
}

exit_status show_stats(const settings& values) {
    const auto admin = open_outbox_admin(outbox_of(values), wait_of(values), file_use::read);
    if (!admin) return complain(admin.error());
    const auto stats = (*admin)->stats();
    if (!stats) return complain(stats.error());
    if (values.flag("json")) return print(stats_json(*stats));
    table out({"backlog", "oldest", "dead", "parked keys", "paused"});
    out.add(
        {fmt::format("{}", stats->backlog),
         stats->oldest_age ? format_span(*stats->oldest_age) : "-",
         fmt::format("{}", stats->dead),
         fmt::format("{}", stats->parked_lanes),
         paused_text(*stats)}
    );
    return print(out.text());
}

/// `pause` or `resume`; already so is no fault.
exit_status hold_back(
    const settings& values,
    result<bool> (outbox_admin::*what)(const std::optional<std::string>&),
    std::string_view now,
    std::string_view before
) {
    const url where = outbox_of(values);
    const auto admin = open_outbox_admin(where, wait_of(values));
    if (!admin) return complain(admin.error());
    const auto topic = values.has("topic") ? std::optional(values.text("topic")) : std::nullopt;
    const auto changed = ((**admin).*what)(topic);
    if (!changed) return complain(changed.error());
    return print(fmt::format(
        "{}{} {}\n", where.given, topic ? fmt::format(", topic {},", *topic) : "", *changed ? now : before
    ));
}

exit_status pause(const settings& values) {
    return hold_back(
        values,
        &outbox_admin::pause,
        "is paused; what relays have read already still goes out",
        "was paused already"
    );
}
/// Topics may be paused by themselves beside the whole outbox.
exit_status resume(const settings& values) {
    const auto done = hold_back(values, &outbox_admin::resume, "goes on", "was not paused");
    if (done != exit_status::done) return done;
    const auto admin = open_outbox_admin(outbox_of(values), wait_of(values), file_use::read);
    if (!admin) return complain(admin.error());
    const auto stats = (*admin)->stats();
    if (!stats) return complain(stats.error());
    if (stats->paused) return print("the outbox as a whole is still paused; resume it without --topic\n");
    if (stats->paused_topics.empty()) return done;
    return print(fmt::format(
        "still paused: {} {}; resume each with --topic\n",
        stats->paused_topics.size() == 1 ? "topic" : "topics",
        fmt::join(stats->paused_topics, ", ")
    ));
}

command_spec holding(
    std::string_view path,
    std::string_view about,
    std::string_view example,
    exit_status (*run)(const settings&)
) {
    return {
        .path = path,
        .about = about,
        .example = example,
        .options =
            {outbox_option(),
             {.name = "topic",
              .kind = option_kind::name,
              .placeholder = "TOPIC",
              .meaning = "Only this topic; all of the outbox without it"},
             wait_option()},
        .check = check_outbox,
        .run = run};
}

}  // namespace

void add_outbox_commands(std::vector<command_spec>& list) {
    list.push_back(
        {.path = "outbox init",
         .about = "Make the tables of an outbox, and its file if need be",
         .example = "millrace outbox init --outbox sqlite:shop.db",
         .options =
             {outbox_option(),
              {.name = "print",
               .kind = option_kind::flag,
               .fallback = "false",
               .meaning = "Print the SQL that the table needs, with the least rights of both roles, and "
                          "change nothing"},
              {.name = "writer-role",
               .kind = option_kind::name,
               .placeholder = "ROLE",
               .fallback = "outbox_writer",
               .meaning = "Role of the application in what --print shows"},
              {.name = "relay-role",
               .kind = option_kind::name,
               .placeholder = "ROLE",
               .fallback = "outbox_relay",
               .meaning = "Role of the relay in what --print shows"},
              wait_option()},
         .check = check_outbox,
         .run = init}
    );
    std::vector<option_spec> put{outbox_option()};
    add_put_options(put, true);
    put.push_back(wait_option());
    list.push_back(
        {.path = "outbox put",
         .about = "Write one event, or NDJSON from standard input",
         .example = "millrace outbox put --outbox sqlite:shop.db "
                    "--topic orders --key 42 --value paid",
         .options = std::move(put),
         .check = check_outbox_put,
         .run = put_outbox}
    );
    list.push_back(
        {.path = "outbox stats",
         .about = "Count what is undelivered and what was given up",
         .example = "millrace outbox stats --outbox sqlite:shop.db --json",
         .options = {outbox_option(), json_option(), wait_option()},
         .check = check_outbox,
         .run = show_stats}
    );
    list.push_back(holding(
        "outbox pause",
        "Let relays read no more rows, of one topic or at all, until resumed",
        "millrace outbox pause --outbox sqlite:shop.db --topic orders",
        pause
    ));
    list.push_back(holding(
        "outbox resume",
        "Let relays go on where they were paused",
        "millrace outbox resume --outbox sqlite:shop.db --topic orders",
        resume
    ));
}

}  // namespace millrace::app
