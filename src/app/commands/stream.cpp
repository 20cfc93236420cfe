#include "adapters.hpp"
#include "commands.hpp"
#include "json_text.hpp"
#include "local_admin.hpp"
#include "output.hpp"
#include "put.hpp"
#include "settings.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/url.hpp>

#include <chrono>
#include <limits>

#include <fmt/format.h>

namespace millrace::app {

namespace {

using kind = option_kind;

/// The file and the name of the stream. The URL must have been checked.
url address_of(const settings& values) {
    return parse_url(values.text("stream"), url_role::stream).value();
}

// A stream in the cloud takes its time to be made or changed.
constexpr milliseconds remote_wait = std::chrono::minutes{2};

result<std::unique_ptr<stream_admin>> open_admin(const settings& values, file_use use = file_use::write) {
    const url where = address_of(values);
    const bool patient = where.scheme != "local" && !values.given("wait");
    return open_stream_admin(where, patient ? remote_wait : wait_of(values), use);
}

void check_stream(const settings& values, faults& found) {
    check_url(values, "stream", url_role::stream, found);
}

std::string parents_json(const std::vector<shard_id>& parents) {
    std::string out = "[";
    for (const shard_id& parent : parents) {
        if (out.size() > 1) out += ',';
        out += json_string(parent.value());
    }
    return out + "]";
}

std::string or_null(const std::optional<std::string>& value) {
    return value ? json_string(*value) : "null";
}

std::string number_or(const std::optional<std::uint64_t>& value, const char* otherwise) {
    return value ? fmt::format("{}", *value) : otherwise;
}

std::string describe_json(const stream_facts& info) {
    std::string out = fmt::format(
        R"({{"stream":{},"created":"{}","retention_s":{},"shards":[)",
        json_string(info.name),
        format_time(info.created_at),
        info.retention ? fmt::format("{}", info.retention->count() / 1000) : "null"
    );
    for (const shard_facts& s : info.shards) {
        if (out.back() == '}') out += ',';
        out += fmt::format(
            R"({{"shard":{},"parents":{},"hash_from":"{}","hash_to":"{}","closed":{},"records":{},"bytes":{},)"
            R"("first_sequence":{},"last_sequence":{}}})",
            json_string(s.shard.value()),
            parents_json(s.parents),
            s.range.from.to_string(),
            s.range.to.to_string(),
            s.closed,
            number_or(s.records, "null"),
            number_or(s.bytes, "null"),
            or_null(s.first_sequence),
            or_null(s.last_sequence)
        );
    }
    return out + "]}\n";
}

std::string describe_table(const stream_facts& info) {
    table out({"shard", "parents", "state", "records", "bytes", "hash_from", "hash_to"});
    for (const shard_facts& s : info.shards) {
        std::string parents;
        for (const shard_id& p : s.parents)
            parents += (parents.empty() ? "" : ",") + p.value();
        out.add(
            {s.shard.value(),
             parents.empty() ? "-" : parents,
             s.closed ? "closed" : "open",
             number_or(s.records, "-"),
             number_or(s.bytes, "-"),
             s.range.from.to_string(),
             s.range.to.to_string()}
        );
    }
    return out.text();
}

exit_status create_stream(const settings& values) {
    const auto admin = open_admin(values, file_use::create);
    if (!admin) return complain(admin.error());
    std::optional<milliseconds> retention;
    if (values.has("retention")) {
        retention = std::chrono::duration_cast<milliseconds>(values.duration("retention"));
    }
    const auto shards = static_cast<std::uint32_t>(values.count("shards"));
    if (const auto made = (*admin)->create(shards, retention); !made) {
        return complain(made.error());
    }
    return print(fmt::format("created {} with {}\n", values.text("stream"), counted(shards, "shard")));
}

exit_status describe_stream(const settings& values) {
    const auto admin = open_admin(values, file_use::read);
    if (!admin) return complain(admin.error());
    const auto info = (*admin)->describe();
    if (!info) return complain(info.error());
    return print(values.flag("json") ? describe_json(*info) : describe_table(*info));
}

void check_stream_put(const settings& values, faults& found) {
    check_stream(values, found);
    check_put(values, found);
}

exit_status put_stream(const settings& values) {
    const auto admin = open_admin(values);
    if (!admin) return complain(admin.error());
    // A missing stream is said before any input is read.
    if (const auto info = (*admin)->describe(); !info) return complain(info.error());
    return run_put(
        values,
        address_of(values).stream,
        [&](std::span<const event> events) { return (*admin)->put(events); },
        [&](const event& one) { return (*admin)->check(one); }
    );
}

void check_split(const settings& values, faults& found) {
    check_stream(values, found);
    if (!values.has("at")) return;
    if (const auto at = hash_key::parse(values.text("at")); !at) {
        found.add(fmt::format("--at: {} is not a number from 0 to 2^128 - 1", in_quotes(values.text("at"))));
    }
}

exit_status split_shard(const settings& values) {
    const auto admin = open_admin(values);
    if (!admin) return complain(admin.error());
    std::optional<hash_key> at;
    if (values.has("at")) at = hash_key::parse(values.text("at")).value();
    const auto children = (*admin)->split(shard_id{values.text("shard")}, at);
    if (!children) return complain(children.error());
    return print(fmt::format(
        "split {} into {} and {}\n", values.text("shard"), children->first.value(), children->second.value()
    ));
}

void check_merge(const settings& values, faults& found) {
    check_stream(values, found);
    const auto& shards = values.list("shard");
    if (!shards.empty() && shards.size() != 2)
        found.add("--shard must be given twice: the two neighbours to be merged");
    if (shards.size() == 2 && shards[0] == shards[1]) found.add("--shard names the same shard twice");
}

exit_status merge_shards(const settings& values) {
    const auto admin = open_admin(values);
    if (!admin) return complain(admin.error());
    const auto& shards = values.list("shard");
    const auto child = (*admin)->merge(shard_id{shards[0]}, shard_id{shards[1]});
    if (!child) return complain(child.error());
    return print(fmt::format("merged {} and {} into {}\n", shards[0], shards[1], child->value()));
}

void check_trim(const settings& values, faults& found) {
    check_stream(values, found);
    const auto where = parse_url(values.text("stream"), url_role::stream);
    if (where && where->scheme != "local")
        found.add(
            "--stream: only a local stream is trimmed by hand; others drop what is older than their retention"
        );
    if (values.has("before")) {
        if (const auto moment = parse_time(values.text("before")); !moment) {
            found.add(fmt::format("--before: {}", moment.error().detail));
        }
    }
    if (values.has("before") && values.has("older-than"))
        found.add("--before and --older-than exclude each other");
}

exit_status trim_stream(const settings& values) {
    const url where = address_of(values);
    auto admin = local_admin::open(where.path, {.busy_timeout = wait_of(values)});
    if (!admin) return complain(admin.error());
    local_trim what;
    if (values.has("before")) what.before = parse_time(values.text("before")).value();
    if (values.has("older-than")) {
        what.before = std::chrono::floor<milliseconds>(
            std::chrono::system_clock::now() - values.duration("older-than")
        );
    }
    if (values.has("through-sequence")) what.through_sequence = values.count("through-sequence");
    const auto trimmed = admin->trim(where.stream, what);
    if (!trimmed) return complain(trimmed.error());
    auto text = fmt::format(
        "removed {} ({}) and {}\n",
        counted(trimmed->records, "record"),
        counted(trimmed->bytes, "byte"),
        counted(trimmed->shards.size(), "shard")
    );
    if (trimmed->clock_ahead) {
        text += fmt::format(
            "the newest record bears {}, which is ahead of this machine's clock: it was appended while a "
            "clock was wrong, and all later ones bear that time, too; set the clocks right, and remove these "
            "records once they are read, by --through-sequence\n",
            format_time(*trimmed->clock_ahead)
        );
    }
    return print(text);
}

option_spec shard_option(bool many) {
    return {
        .name = "shard",
        .placeholder = "ID",
        .meaning = many ? "A shard to be merged; given twice, neighbours by hash" : "The shard",
        .required = true,
        .many = many};
}

void add_changes(std::vector<command_spec>& list) {
    list.push_back(
        {.path = "stream split",
         .about = "Close a shard and go on in two children",
         .example = "millrace stream split --stream local:streams.db/orders --shard shardId-000000000000",
         .options =
             {stream_option(),
              shard_option(false),
              {.name = "at",
               .placeholder = "HASH",
               .meaning = "First hash of the second child; the middle by default"},
              wait_option()},
         .check = check_split,
         .run = split_shard}
    );
    list.push_back(
        {.path = "stream merge",
         .about = "Close two neighbouring shards and go on in one child",
         .example =
             "millrace stream merge --stream local:streams.db/orders --shard shardId-000000000001 --shard "
             "shardId-000000000002",
         .options = {stream_option(), shard_option(true), wait_option()},
         .check = check_merge,
         .run = merge_shards}
    );
    list.push_back(
        {.path = "stream trim",
         .about = "Remove old records: by default what is older than the stream's retention",
         .example = "millrace stream trim --stream local:streams.db/orders --older-than 7d",
         .options =
             {stream_option(),
              {.name = "before",
               .placeholder = "TIME",
               .meaning = "Remove what arrived before an RFC 3339 time"},
              {.name = "older-than",
               .kind = kind::duration,
               .placeholder = "TIME",
               .meaning = "Remove what arrived longer ago",
               .most = "36500d"},
              {.name = "through-sequence",
               .kind = kind::count,
               .placeholder = "N",
               .meaning = "Remove up to this sequence number",
               .most = "9223372036854775807"},
              wait_option()},
         .check = check_trim,
         .run = trim_stream}
    );
}

}  // namespace

void add_stream_commands(std::vector<command_spec>& list) {
    list.push_back(
        {.path = "stream create",
         .about = "Make a stream, and the file of a local one if need be",
         .example = "millrace stream create --stream local:streams.db/orders --shards 4",
         .options =
             {stream_option(),
              {.name = "shards",
               .kind = kind::count,
               .placeholder = "N",
               .meaning = "Shards, each with an even part of the hashes",
               .least = "1",
               .most = "10000",
               .required = true},
              {.name = "retention",
               .kind = kind::duration,
               .placeholder = "TIME",
               .meaning = "What trim removes by default: records older than this",
               .least = "1s",
               .most = "36500d"},
              wait_option()},
         .check = check_stream,
         .run = create_stream}
    );
    list.push_back(
        {.path = "stream describe",
         .about = "Show the shards of a stream",
         .example = "millrace stream describe --stream local:streams.db/orders",
         .options = {stream_option(), json_option(), wait_option()},
         .check = check_stream,
         .run = describe_stream}
    );
    std::vector<option_spec> put{stream_option()};
    add_put_options(put, false);
    put.push_back(wait_option());
    list.push_back(
        {.path = "stream put",
         .about = "Append one event, or NDJSON from standard input",
         .example = "millrace stream put --stream local:streams.db/orders --key 42 --value paid",
         .options = std::move(put),
         .check = check_stream_put,
         .run = put_stream}
    );
    add_changes(list);
}

}  // namespace millrace::app
