#include "commands.hpp"
#include "settings.hpp"

#include <chrono>

namespace millrace::app {

option_spec outbox_option() {
    return {
        .name = "outbox",
        .placeholder = "URL",
        .meaning = "The outbox, sqlite:PATH or postgresql://HOST/DATABASE[?table=SCHEMA.NAME]",
        .example = "sqlite:shop.db",
        .required = true};
}

option_spec stream_option() {
    return {
        .name = "stream",
        .placeholder = "URL",
        .meaning = "The stream, local:PATH/STREAM or kinesis://REGION/STREAM",
        .example = "local:streams.db/orders",
        .required = true};
}

option_spec group_option() {
    return {
        .name = "group",
        .kind = option_kind::name,
        .placeholder = "NAME",
        .meaning = "The workers of one name and state share the stream",
        .example = "billing",
        .required = true};
}

option_spec state_option() {
    return {
        .name = "state",
        .placeholder = "URL",
        .meaning =
            "Where leases and checkpoints are kept: sqlite:PATH, postgresql://HOST/DATABASE or "
            "dynamodb://REGION/TABLE",
        .example = "sqlite:state.db",
        .required = true};
}

option_spec json_option() {
    return {
        .name = "json",
        .kind = option_kind::flag,
        .placeholder = "",
        .fallback = "false",
        .meaning = "Print JSON instead of a table",
        .in_file = false};
}

option_spec poison_option() {
    return {
        .name = "on-poison",
        .kind = option_kind::choice,
        .placeholder = "POLICY",
        .fallback = "park-key",
        .meaning = "What becomes of a row that the sink will never take",
        .choices = "park-row|park-key|stop"};
}

option_spec wait_option() {
    return time_option(
        "wait", "5s", "0s", "10m", "Fail when another process keeps the database locked for so long"
    );
}

milliseconds wait_of(const settings& values) {
    return std::chrono::ceil<milliseconds>(values.duration("wait"));
}

option_spec count_option(
    std::string_view name, std::string_view fallback, std::string_view most, std::string_view meaning
) {
    return {
        .name = name,
        .kind = option_kind::count,
        .placeholder = "N",
        .fallback = fallback,
        .meaning = meaning,
        .least = "1",
        .most = most};
}

option_spec bytes_option(std::string_view name, std::string_view fallback, std::string_view meaning) {
    return {
        .name = name,
        .kind = option_kind::bytes,
        .placeholder = "SIZE",
        .fallback = fallback,
        .meaning = meaning,
        .least = "64KiB",
        .most = "4GiB"};
}

option_spec time_option(
    std::string_view name,
    std::string_view fallback,
    std::string_view least,
    std::string_view most,
    std::string_view meaning
) {
    return {
        .name = name,
        .kind = option_kind::duration,
        .placeholder = "TIME",
        .fallback = fallback,
        .meaning = meaning,
        .least = least,
        .most = most};
}

void add_retry_options(std::vector<option_spec>& options) {
    options.push_back(
        {.name = "retry-min",
         .kind = option_kind::duration,
         .placeholder = "TIME",
         .fallback = "100ms",
         .meaning = "First pause after a failure; doubles up to retry-max",
         .least = "1ms",
         .most = "1h"}
    );
    options.push_back(
        {.name = "retry-max",
         .kind = option_kind::duration,
         .placeholder = "TIME",
         .fallback = "30s",
         .meaning = "Longest pause between two tries",
         .least = "1ms",
         .most = "1h"}
    );
}

void add_process_options(std::vector<option_spec>& options) {
    options.push_back(
        {.name = "config",
         .placeholder = "FILE",
         .meaning = "Read options from a YAML file; those of the command line win",
         .in_file = false}
    );
    options.push_back(
        {.name = "log-level",
         .kind = option_kind::choice,
         .placeholder = "LEVEL",
         .fallback = "info",
         .meaning = "Least level that is logged: trace, debug, info, warning, error or off",
         .choices = "trace|debug|info|warning|error|off"}
    );
    options.push_back(
        {.name = "log-format",
         .kind = option_kind::choice,
         .placeholder = "FORMAT",
         .fallback = "text",
         .meaning = "Log lines as key=value text or as JSON",
         .choices = "text|json"}
    );
    options.push_back(
        {.name = "admin",
         .placeholder = "HOST:PORT",
         .meaning = "Serve /healthz, /readyz, /status and /metrics there; off by default",
         .example = "127.0.0.1:9464"}
    );
}

}  // namespace millrace::app
