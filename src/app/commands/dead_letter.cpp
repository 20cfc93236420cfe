#include "adapters.hpp"
#include "bytes_shown.hpp"
#include "commands.hpp"
#include "json_text.hpp"
#include "output.hpp"
#include "record/bytes_text.hpp"
#include "settings.hpp"
#include "text/one_line.hpp"
#include "text/shell.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/url.hpp>

#include <fmt/format.h>

namespace millrace::app {

namespace {

using kind = option_kind;

void check_ids(const settings& values, faults& found) {
    for (const std::string& text : values.list("id")) {
        const auto id = parse_count(text);
        if (!id)
            found.add(fmt::format("--id: {}", id.error().detail));
        else if (*id == 0 || *id > INT64_MAX)
            found.add(fmt::format("--id: {} is no id of a row", in_quotes(text)));
    }
}

void check_dead(const settings& values, faults& found) {
    check_url(values, "outbox", url_role::outbox, found);
}

void check_show(const settings& values, faults& found) {
    check_dead(values, found);
    check_ids(values, found);
}

void check_selection(const settings& values, faults& found) {
    check_show(values, found);
    if (values.given("key") && values.given("key-base64"))
        found.add("--key and --key-base64 exclude each other");
    if (values.given("key-base64") && !from_base64(values.text("key-base64"))) {
        found.add("--key-base64: the value is not valid base64");
    }
    const bool some =
        values.has("id") || values.given("topic") || values.given("key") || values.given("key-base64");
    if (!some && !values.flag("all")) found.add("nothing is selected; give --id, --key, --topic or --all");
    if (some && values.flag("all")) found.add("--all excludes --id, --key and --topic");
}

std::vector<row_id> ids_of(const settings& values) {
    std::vector<row_id> out;
    for (const std::string& text : values.list("id")) {
        out.emplace_back(static_cast<std::int64_t>(parse_count(text).value()));
    }
    return out;
}

dead_selection selection_of(const settings& values) {
    dead_selection out;
    out.ids = ids_of(values);
    if (values.given("topic")) out.topic = values.text("topic");
    if (values.given("key")) out.key = values.text("key");
    if (values.given("key-base64")) out.key = from_base64(values.text("key-base64"));
    return out;
}

std::string headers_json(const std::vector<header>& headers) {
    std::string out = "[";
    for (const header& h : headers) {
        if (out.size() > 1) out += ',';
        out += '[' + json_string(h.name) + ',';
        if (!h.value)
            out += "null";
        else if (is_utf8(*h.value))
            out += json_string(*h.value);
        else
            out += "{\"base64\":\"" + to_base64(*h.value) + "\"}";
        out += ']';
    }
    return out + "]";
}

/// With `whole`, the payload as well.
std::string dead_json(const dead_event& d, bool whole) {
    std::string out = fmt::format(
        R"({{"id":{},"topic":{},{},"reason":{},"error":{},"attempts":{},"first":"{}","last":"{}")",
        d.id.value(),
        json_string(d.event.topic),
        field_json("key", d.event.key),
        json_string(d.reason),
        json_string(d.error),
        d.attempts,
        format_time(d.first_at),
        format_time(d.last_at)
    );
    if (whole) {
        out += fmt::format(
            R"(,"created":"{}",{},"headers":{})",
            format_time(d.created_at),
            field_json("value", d.event.value),
            d.broken_headers.empty() ? headers_json(d.event.headers) : "null"
        );
        if (d.event.partition) out += fmt::format(R"(,"partition":{})", *d.event.partition);
        if (!d.broken_headers.empty()) {
            out += R"(,"broken_headers":)" + json_string(d.broken_headers);
            out += R"(,"headers_base64":")" + to_base64(d.stored_headers) + '"';
        }
    }
    return out + "}";
}

exit_status list_dead(const settings& values) {
    auto admin = open_outbox_admin(outbox_of(values), wait_of(values), file_use::read);
    if (!admin) return complain(admin.error());
    const auto rows =
        (*admin)->list_dead(selection_of(values), values.count("limit"), dead_part::without_payload);
    if (!rows) return complain(rows.error());
    if (values.flag("json")) {
        std::string out = "[";
        for (const dead_event& d : *rows)
            out += (out.size() > 1 ? ",\n " : "") + dead_json(d, false);
        return print(out + "]\n");
    }
    table out({"id", "topic", "key", "reason", "attempts", "first", "last", "error"});
    for (const dead_event& d : *rows) {
        out.add(
            {fmt::format("{}", d.id.value()),
             in_quotes(d.event.topic),
             shown(d.event.key),
             d.reason,
             fmt::format("{}", d.attempts),
             format_time(d.first_at),
             format_time(d.last_at),
             one_line(d.error)}
        );
    }
    return print(out.text());
}

exit_status show_dead(const settings& values) {
    auto admin = open_outbox_admin(outbox_of(values), wait_of(values), file_use::read);
    if (!admin) return complain(admin.error());
    std::string out;
    for (const row_id id : ids_of(values)) {
        const auto rows = (*admin)->list_dead({.ids = {id}, .topic = {}, .key = {}}, 1, dead_part::whole);
        if (!rows) return complain(rows.error());
        if (rows->empty()) {
            return complain(error{
                errc::not_found,
                retry_advice::never,
                false,
                fmt::format("{} has no dead letter with the id {}", outbox_of(values).given, id.value())});
        }
        out += dead_json(rows->front(), true) + "\n";
    }
    return print(out);
}

exit_status settle(
    const settings& values,
    result<std::uint64_t> (outbox_admin::*what)(const dead_selection&),
    std::string_view verb
) {
    auto admin = open_outbox_admin(outbox_of(values), wait_of(values));
    if (!admin) return complain(admin.error());
    const auto count = ((**admin).*what)(selection_of(values));
    if (!count) return complain(count.error());
    if (*count == 0 && !values.flag("all")) {
        return complain(error{
            errc::not_found,
            retry_advice::never,
            false,
            fmt::format(
                "{0} has no such dead letter; see millrace outbox dead list --outbox {1}",
                outbox_of(values).given,
                shell_quoted(outbox_of(values).given)
            )});
    }
    return print(fmt::format("{} {}\n", verb, counted(*count, "event")));
}

exit_status retry_dead(const settings& values) {
    return settle(values, &outbox_admin::retry_dead, "put back");
}
exit_status drop_dead(const settings& values) {
    return settle(values, &outbox_admin::drop_dead, "dropped");
}

option_spec id_option(bool required) {
    return {
        .name = "id",
        .placeholder = "ID",
        .meaning = "Id of a row; may be repeated",
        .required = required,
        .many = true,
        .positional = true};
}

std::vector<option_spec> selection_options() {
    return {
        outbox_option(),
        id_option(false),
        {.name = "topic", .placeholder = "TOPIC", .meaning = "Only of this topic"},
        {.name = "key", .placeholder = "TEXT", .meaning = "Only of this key"},
        {.name = "key-base64", .placeholder = "BASE64", .meaning = "Only of this key, as bytes"},
        wait_option(),
    };
}

command_spec settling(
    std::string_view path,
    std::string_view about,
    std::string_view example,
    exit_status (*run)(const settings&)
) {
    std::vector<option_spec> options = selection_options();
    options.push_back({.name = "all", .kind = kind::flag, .fallback = "false", .meaning = "All dead letters"}
    );
    return {
        .path = path,
        .about = about,
        .example = example,
        .options = std::move(options),
        .check = check_selection,
        .run = run};
}

}  // namespace

void add_dead_letter_commands(std::vector<command_spec>& list) {
    std::vector<option_spec> options = selection_options();
    options.push_back(count_option("limit", "1000", "1000000", "Rows shown, by id"));
    options.push_back(json_option());
    list.push_back(
        {.path = "outbox dead list",
         .about = "List the rows that were given up, and why",
         .example = "millrace outbox dead list --outbox sqlite:shop.db",
         .options = std::move(options),
         .check = check_show,
         .run = list_dead}
    );
    option_spec json = json_option();
    json.meaning = "As it is anyway: one JSON object a row";
    list.push_back(
        {.path = "outbox dead show",
         .about = "Show a row that was given up, with its payload",
         .example = "millrace outbox dead show --outbox sqlite:shop.db --id 17",
         .options = {outbox_option(), id_option(true), json, wait_option()},
         .check = check_show,
         .run = show_dead}
    );
    list.push_back(settling(
        "outbox dead retry",
        "Put rows back under their old ids; a parked key goes on in order",
        "millrace outbox dead retry --outbox sqlite:shop.db --key 42",
        retry_dead
    ));
    list.push_back(settling(
        "outbox dead drop",
        "Delete rows that were given up for good",
        "millrace outbox dead drop --outbox sqlite:shop.db --id 17",
        drop_dead
    ));
}

}  // namespace millrace::app
