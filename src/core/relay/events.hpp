/// What happens to a relay, and what it asks for. Plain structs; `relay` explains them.
#pragma once

#include "port/event_sink.hpp"
#include "port/outbox_source.hpp"
#include "relay/row_news.hpp"

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace millrace::relay_event {

struct started {
    epoch mine;
};
struct fetched {
    std::uint64_t number;
    result<fetch_reply> reply;
};
struct published {
    channel where;
    std::uint64_t number;
    result<publish_outcome> outcome;
};
struct main_reset {
    result<void> outcome;
};
struct removed {
    std::uint64_t number;
    result<std::uint64_t> outcome;
};
struct buried {
    std::uint64_t number;
    result<void> outcome;
};
struct start_loaded {
    std::uint64_t number;
    result<outbox_start> from;
};
struct source_changed {};
struct sink_changed {};
struct timer {};
struct drain {};
struct halt {};

using any = std::variant<
    started,
    fetched,
    published,
    main_reset,
    removed,
    buried,
    start_loaded,
    source_changed,
    sink_changed,
    timer,
    drain,
    halt>;

}  // namespace millrace::relay_event

/// Numbers go with the request and come back with its completion; never used twice.
namespace millrace::relay_action {

struct fetch {
    std::uint64_t number;
    fetch_request request;
};
struct publish {
    channel where;
    std::uint64_t number;
    std::vector<outgoing_row> rows;
};
struct remove {
    std::uint64_t number;
    std::vector<id_range> delivered;
    table_mark mark;
};
struct bury {
    std::uint64_t number;
    bury_request request;
};
struct load_start {
    std::uint64_t number;
};
struct reset_main {
    /// `event_sink::purge`: what was probed in an earlier life must not go out any more.
    bool probes{false};
};
struct wake_at {
    mono_time when;
};
struct drained {
    result<void> outcome;
};
/// Nothing more is published until `started`.
struct stopped {
    error why;
};
/// For the log.
struct report {
    log_level level;
    std::string_view what;
    error why;
};

/// For the log: what became of rows. May come in floods.
struct report_rows {
    log_level level;
    std::string_view what;
    row_news news;
};

using any = std::variant<
    fetch,
    publish,
    remove,
    bury,
    load_start,
    reset_main,
    wake_at,
    drained,
    stopped,
    report,
    report_rows>;

}  // namespace millrace::relay_action
