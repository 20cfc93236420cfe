#include "commands.hpp"
#include "outbox_admin.hpp"
#include "output.hpp"
#include "put.hpp"
#include "settings.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/url.hpp>

#include <chrono>

#include <fmt/format.h>

namespace millrace::app {

namespace {

void check_outbox(const settings& values, faults& found) {
    check_url(values, "outbox", url_role::outbox, found);
}

result<outbox_admin> open_admin(const settings& values) {
    const url where = parse_url(values.text("outbox"), url_role::outbox).value();
    return outbox_admin::open(where.path, where.given);
}

exit_status init_outbox(const settings& values) {
    const url where = parse_url(values.text("outbox"), url_role::outbox).value();
    const auto made = outbox_admin::init(where.path, where.given);
    if (!made) return complain(made.error());
    return print(fmt::format("{} is ready\n", where.given));
}

void check_outbox_put(const settings& values, faults& found) {
    check_outbox(values, found);
    check_put(values, found);
}

exit_status put_outbox(const settings& values) {
    auto admin = open_admin(values);
    if (!admin) return complain(admin.error());
    return run_put(values, {}, [&](std::span<const event> events) -> result<void> {
        if (const auto put = admin->put(events); !put) return tl::unexpected(put.error());
        return {};
    });
}

exit_status show_stats(const settings& values) {
    auto admin = open_admin(values);
    if (!admin) return complain(admin.error());
    const auto stats = admin->stats();
    if (!stats) return complain(stats.error());
    double age = 0;
    if (stats->oldest) {
        const auto since = std::chrono::system_clock::now() - *stats->oldest;
        age = std::max(0.0, std::chrono::duration<double>(since).count());
    }
    if (values.flag("json")) {
        return print(fmt::format(
            "{{\"backlog\":{},\"oldest_age_s\":{},\"dead\":{},\"parked_keys\":{}}}"
            "\n",
            stats->backlog,
            stats->oldest ? fmt::format("{:.3f}", age) : "null",
            stats->dead,
            stats->parked_lanes
        ));
    }
    table out({"backlog", "oldest", "dead", "parked keys"});
    out.add(
        {fmt::format("{}", stats->backlog),
         stats->oldest
             ? format_span(std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(age)))
             : "-",
         fmt::format("{}", stats->dead),
         fmt::format("{}", stats->parked_lanes)}
    );
    return print(out.text());
}

}  // namespace

void add_outbox_commands(std::vector<command_spec>& list) {
    list.push_back(
        {.path = "outbox init",
         .about = "Make the tables of an outbox, and its file if need be",
         .example = "millrace outbox init --outbox sqlite:shop.db",
         .options = {outbox_option()},
         .check = check_outbox,
         .run = init_outbox}
    );
    std::vector<option_spec> put{outbox_option()};
    add_put_options(put, true);
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
         .options = {outbox_option(), json_option()},
         .check = check_outbox,
         .run = show_stats}
    );
}

}  // namespace millrace::app
