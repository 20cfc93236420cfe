#include "adapters.hpp"
#include "commands.hpp"
#include "event_loop.hpp"
#include "group/group_start.hpp"
#include "group/kept_positions.hpp"
#include "group_import.hpp"
#include "group_reset.hpp"
#include "group_view.hpp"
#include "import_lines.hpp"
#include "output.hpp"
#include "process_identity.hpp"
#include "settings.hpp"
#include "text/nearest.hpp"
#include "translate.hpp"
#include "units.hpp"

#include <millrace/release.hpp>
#include <millrace/url.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace millrace::app {

namespace {

/// Turns the loop until one request has completed.
template <class T>
result<T> wait_for(event_loop& loop, const std::function<void(completion<T>)>& request) {
    std::optional<result<T>> out;
    loop.post([&] {
        request([&](result<T> reply) {
            out = std::move(reply);
            loop.stop();
        });
    });
    loop.run();
    return std::move(*out);
}

struct group_data {
    stream_listing stream;
    std::optional<error> stream_is_away;  ///< Then `stream` is what the rows tell of it.
    std::vector<worker_row> workers;
    std::vector<shard_row> shards;
};

std::vector<listed_shard> shards_of(const std::vector<shard_row>& rows) {
    std::vector<listed_shard> shards;
    for (const auto& row : rows)
        shards.push_back({row.shard, row.parents, row.finished_at.has_value(), {}, {}});
    return shards;
}

/// Refuses a group of a newer program, whose rows may mean something else.
result<void> check_known(event_loop& loop, lease_store& store) {
    const auto row = wait_for<std::optional<lease_row>>(loop, [&](auto done) {
        store.read(std::monostate{}, std::move(done));
    });
    if (!row) return tl::unexpected(row.error());
    return *row ? check_format(std::get<group_row>(**row)) : result<void>{};
}

result<group_data> read_group(event_loop& loop, record_source& source, lease_store& store) {
    group_data out;
    if (const auto known = check_known(loop, store); !known) return tl::unexpected(known.error());
    auto stream = wait_for<stream_listing>(loop, [&](auto done) { source.list_shards(std::move(done)); });
    if (stream) {
        out.stream = std::move(*stream);
    } else if (stream.error().code == errc::unavailable || stream.error().code == errc::throttled) {
        out.stream_is_away = std::move(stream.error());
    } else {
        return tl::unexpected(stream.error());
    }
    // Shards before workers: an owner that is missing from the later list is
    // gone.
    auto shards =
        wait_for<std::vector<shard_row>>(loop, [&](auto done) { store.list_shards(std::move(done)); });
    if (!shards) return tl::unexpected(shards.error());
    out.shards = std::move(*shards);
    auto workers =
        wait_for<std::vector<worker_row>>(loop, [&](auto done) { store.list_workers(std::move(done)); });
    if (!workers) return tl::unexpected(workers.error());
    out.workers = std::move(*workers);
    if (out.stream_is_away) out.stream.shards = shards_of(out.shards);
    return out;
}

void check_group(const settings& values, faults& found) {
    check_url(values, "stream", url_role::stream, found);
    check_url(values, "state", url_role::state, found);
}

/// Looking at a state must not make it.
result<void> must_exist(const url& state, const std::string& stream) {
    if (state.scheme == "memory") {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "--state: {} lives within one process, so there is "
                "nothing to be seen of it",
                state.given
            )
        );
    }
    if (state.scheme != "sqlite") {
        auto known = known_groups(state, stream);
        if (known) return {};
        if (known.error().code == errc::not_found)
            known.error().detail += "; a group makes it at its first start";
        return tl::unexpected(std::move(known.error()));
    }
    if (::access(state.path.c_str(), F_OK) == 0) return {};
    return fail(
        errc::not_found,
        fmt::format(
            "{} cannot be opened: {}; a group makes it at its first start", state.given, std::strerror(errno)
        )
    );
}

/// A name that the state does not know is a slip, or too early.
result<void> must_be_known(const settings& values) {
    const url stream = parse_url(values.text("stream"), url_role::stream).value();
    const url state = parse_url(values.text("state"), url_role::state).value();
    const std::string name = values.text("group");
    const auto known = known_groups(state, stream.stream);
    if (!known) return tl::unexpected(known.error());
    if (std::find(known->begin(), known->end(), name) != known->end()) return {};
    std::string hint = "; it has none yet, and a group is made at its first start";
    if (!known->empty()) {
        const std::vector<std::string_view> names(known->begin(), known->end());
        hint = did_you_mean(name, names);
        if (hint.empty() && names.size() <= 10) hint = fmt::format("; it knows {}", fmt::join(names, ", "));
    }
    return fail(
        errc::not_found,
        fmt::format("{} knows no group {} of stream {}{}", state.given, in_quotes(name), stream.stream, hint)
    );
}

/// The stream and the state that a command names.
struct opened_group {
    std::unique_ptr<record_source> source;
    std::unique_ptr<lease_store> store;
};

result<opened_group> open_group(const settings& values, event_loop& loop, store_use how) {
    const url stream = parse_url(values.text("stream"), url_role::stream).value();
    const url state = parse_url(values.text("state"), url_role::state).value();
    const auto there = must_exist(state, stream.stream);
    if (!there && (how.use != file_use::create || there.error().code != errc::not_found))
        return tl::unexpected(there.error());
    auto source = open_source(stream, loop);
    if (!source) return tl::unexpected(std::move(source.error()));
    auto store = open_lease_store(state, {stream.stream, values.text("group")}, loop, how);
    if (!store) return tl::unexpected(std::move(store.error()));
    return opened_group{std::move(*source), std::move(*store)};
}

/// Tells what a tool waits for.
class said_waits final : public log_sink {
public:
    [[nodiscard]] bool enabled(log_level) const noexcept override { return true; }
    void write(log_level, std::string_view event, std::initializer_list<log_field> fields) override {
        if (event == "tool.waits") say(fmt::format("millrace: waiting: {}\n", fields.begin()->value));
    }
};

store_use changing(const settings& values, file_use use) {
    // Short tries: the wait is up with the last one.
    const store_use usual;
    return {use, std::min(usual.busy_timeout, wait_of(values) / 4)};
}

exit_status show_status(const settings& values) {
    event_loop loop;
    const auto group = open_group(values, loop, {.use = file_use::read});
    if (!group) return complain(group.error());
    const auto data = read_group(loop, *group->source, *group->store);
    if (!data) return complain(data.error());
    if (data->workers.empty() && data->shards.empty()) {
        if (const auto known = must_be_known(values); !known) return complain(known.error());
    }
    const auto stream_now = data->stream_is_away ? std::nullopt : std::optional(data->stream.now);
    const group_view view =
        view_group(data->stream.shards, data->workers, data->shards, loop.wall(), stream_now, process_gone);
    if (data->stream_is_away) {
        say(fmt::format(
            "millrace: the stream does not answer, so this is what the state holds, without lag, and without "
            "shards that no worker has seen: {}\n",
            data->stream_is_away->detail
        ));
    }
    for (const auto& problem : view.problems)
        say(fmt::format("millrace: {}\n", problem));
    return print(values.flag("json") ? to_json(view) : to_table(view));
}

result<reset_request> request_of(const settings& values) {
    reset_request out{.start = {}, .force = values.flag("force")};
    if (!values.has("start")) return out;
    const std::string start = values.text("start");
    if (start == "trim_horizon") {
        out.start = reset_start{start_policy::trim_horizon, {}};
    } else if (start == "latest") {
        out.start = reset_start{start_policy::latest, {}};
    } else if (const auto moment = parse_time(start)) {
        out.start = reset_start{start_policy::at_timestamp, *moment};
    } else {
        return fail(errc::invalid_argument, fmt::format("--start: {}", moment.error().detail));
    }
    return out;
}

void check_reset(const settings& values, faults& found) {
    check_group(values, found);
    if (const auto request = request_of(values); !request) found.add(request.error());
}

exit_status reset_group(const settings& values) {
    said_waits waits;
    event_loop loop(waits);
    const auto group = open_group(values, loop, changing(values, file_use::write));
    if (!group) return complain(group.error());
    const auto listing =
        wait_for<stream_listing>(loop, [&](auto done) { group->source->list_shards(std::move(done)); });
    if (!listing) return complain(listing.error());
    reset_request request = request_of(values).value();
    // "Latest" is a moment of the stream's own clock.
    if (request.start && request.start->policy == start_policy::latest) request.start->at = listing->now;
    group_reset job(loop, *group->store, request, this_process(), process_gone, wait_of(values));
    const auto report = wait_for<reset_report>(loop, [&](auto done) { job.start(std::move(done)); });
    if (!report) return complain(report.error());
    if (report->shards_reset == 0 && report->sessions_ended == 0) {
        if (const auto known = must_be_known(values); !known) return complain(known.error());
    }
    return print(fmt::format(
        "reset {} of group {}, ended {}\n",
        counted(report->shards_reset, "shard"),
        values.text("group"),
        counted(report->sessions_ended, "session")
    ));
}

void check_release(const settings& values, faults& found) {
    check_group(values, found);
    check_worker(values, found);
}

exit_status release_one(const settings& values) {
    const auto released = release_worker(
        {values.text("state"),
         values.text("stream"),
         values.text("group"),
         worker_id(values.text("worker")),
         wait_of(values)}
    );
    if (!released) return complain(released.error());
    const auto count = released->shards.size();
    return print(fmt::format(
        "ended {} of worker {}; {}\n",
        counted(released->sessions, "session"),
        values.text("worker"),
        count == 0 ? "it held no shard"
                   : fmt::format("free for others: {}", fmt::join(released->shards, ", "))
    ));
}

/// The whole file, or standard input for `-`.
result<std::string> read_whole(const std::string& path) {
    std::FILE* const in = path == "-" ? stdin : std::fopen(path.c_str(), "rbe");
    if (in == nullptr) {
        return fail(
            errno == ENOENT ? errc::not_found : errc::permission_denied,
            fmt::format("{} cannot be read: {}", in_quotes(path), std::strerror(errno))
        );
    }
    std::string text;
    std::array<char, 65'536> piece{};
    std::size_t count = 0;
    while (text.size() <= import_bytes_max && (count = std::fread(piece.data(), 1, piece.size(), in)) > 0)
        text.append(piece.data(), count);
    const bool broken = std::ferror(in) != 0;
    if (in != stdin) (void)std::fclose(in);  // nothing was written
    if (broken) return fail(errc::unavailable, fmt::format("{} cannot be read to its end", in_quotes(path)));
    if (text.size() <= import_bytes_max) return text;
    return fail(
        errc::invalid_argument,
        fmt::format(
            "{} is larger than {} bytes; is it the file that is meant?", in_quotes(path), import_bytes_max
        )
    );
}

void note_all(const std::vector<shard_id>& shards, std::string_view what) {
    for (const auto& shard : shards)
        say(fmt::format("shard {}: {}\n", in_quotes(shard.value()), what));
}

void check_import(const settings& values, faults& found) {
    check_group(values, found);
    const bool from = values.has("from");
    if (from && values.has("file"))
        found.add("FILE and --from are both given; positions come from one of them");
    if (!from && !values.has("file"))
        found.add("there are no positions: name a FILE, or the former consumer's table by --from");
    if (from) check_url(values, "from", url_role::positions, found);
    for (const auto* const other : {"kept-by", "app"}) {
        if (values.has(other) == from) continue;
        found.add(fmt::format(
            "--{} {}", other, from ? "is missing: --from needs it" : "is of no use without --from"
        ));
    }
}

result<std::vector<imported_shard>> positions_to_import(const settings& values) {
    if (!values.has("from"))
        return read_whole(values.text("file")).and_then([&](const std::string& text) {
            return parse_import(text).and_then([&](auto lines) -> result<std::vector<imported_shard>> {
                if (!lines.empty()) return lines;
                return fail(
                    errc::invalid_argument,
                    fmt::format("{} has no line, so nothing was imported", in_quotes(values.text("file")))
                );
            });
        });
    const auto from = parse_url(values.text("from"), url_role::positions).value();
    const auto stream = parse_url(values.text("stream"), url_role::stream).value().stream;
    const auto whom = kept_by_from(values.text("kept-by")).value();
    const auto under = kept_under(whom, values.text("app"), stream);
    return kept_positions(from, whom, under).and_then([&](const std::vector<kept_row>& rows) {
        return read_kept(rows, under, from.given);
    });
}

exit_status import_group(const settings& values) {
    auto lines = positions_to_import(values);
    if (!lines) return complain(lines.error());
    said_waits waits;
    event_loop loop(waits);
    const auto group = open_group(values, loop, changing(values, file_use::create));
    if (!group) return complain(group.error());
    group_import job(
        loop,
        *group->source,
        *group->store,
        std::move(*lines),
        values.flag("force"),
        this_process(),
        process_gone,
        wait_of(values)
    );
    const auto report = wait_for<import_report>(loop, [&](auto done) { job.start(std::move(done)); });
    if (!report) return complain(report.error());
    note_all(report->inferred, "taken for finished, since a shard behind it was begun and it has no line");
    note_all(report->kept, "stands further than its line, and stays there; --force sets it back");
    note_all(report->gone, "finished, and no longer in the stream; left out");
    return print(fmt::format(
        "imported into group {}: {} written, {} taken for finished, {} kept further, "
        "{} as they were, {} left out\n",
        values.text("group"),
        counted(report->written, "shard"),
        report->inferred.size(),
        report->kept.size(),
        report->same,
        report->gone.size()
    ));
}

}  // namespace

void add_group_commands(std::vector<command_spec>& list) {
    list.push_back(
        {.path = "group status",
         .about = "Show the workers of a group and where each shard stands",
         .example = "millrace group status --stream local:streams.db/orders "
                    "--group billing --state sqlite:state.db",
         .options = {stream_option(), group_option(), state_option(), json_option()},
         .check = check_group,
         .run = show_status}
    );
    list.push_back(
        {.path = "group reset",
         .about = "Let a group begin anew; refused while a worker lives",
         .example = "millrace group reset --stream local:streams.db/orders "
                    "--group billing --state sqlite:state.db",
         .options =
             {stream_option(),
              group_option(),
              state_option(),
              {.name = "start",
               .placeholder = "WHERE",
               .meaning = "Begin there: trim_horizon, latest or an RFC "
                          "3339 time; by default as at first"},
              {.name = "force",
               .kind = option_kind::flag,
               .fallback = "false",
               .meaning = "End the sessions of workers that live"},
              wait_option()},
         .check = check_reset,
         .run = reset_group}
    );
    list.push_back(
        {.path = "group release",
         .about = "End the session of a worker that is stuck: others take its shards at once",
         .example = "millrace group release --stream local:streams.db/orders "
                    "--group billing --state sqlite:state.db --worker worker-1",
         .options =
             {stream_option(),
              group_option(),
              state_option(),
              {.name = "worker",
               .kind = option_kind::name,
               .placeholder = "ID",
               .meaning = "The worker, as group status names it; stop its process, or it registers anew",
               .example = "worker-1",
               .required = true},
              wait_option()},
         .check = check_release,
         .run = release_one}
    );
    list.push_back(
        {.path = "group import",
         .about = "Take over positions that another consumer kept; refused while a worker lives",
         .example = "millrace group import --stream local:streams.db/orders "
                    "--group billing --state sqlite:state.db positions.ndjson",
         .options =
             {stream_option(),
              group_option(),
              state_option(),
              {.name = "file",
               .placeholder = "FILE",
               .meaning = "Lines {\"shard\",\"sequence\",\"sub_sequence\",\"finished\"}; - is standard input",
               .positional = true},
              {.name = "from",
               .placeholder = "URL",
               .meaning = "In place of FILE: the table of the former consumer, which is only read",
               .example = "dynamodb://eu-west-1/shop-kinsumer-metadata"},
              {.name = "kept-by",
               .kind = option_kind::choice,
               .placeholder = "WHOM",
               .meaning = "With --from: gosoline (kinsumer) or harlow (kinesis-consumer)",
               .choices = "gosoline|harlow"},
              {.name = "app",
               .kind = option_kind::name,
               .placeholder = "NAME",
               .meaning = "With --from: the former consumer, as it names itself in its table",
               .example = "shop-billing"},
              {.name = "force",
               .kind = option_kind::flag,
               .fallback = "false",
               .meaning = "Let checkpoints go back"},
              wait_option()},
         .check = check_import,
         .run = import_group}
    );
}

}  // namespace millrace::app
