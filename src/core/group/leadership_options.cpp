#include "group/options.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

#include <fmt/core.h>

namespace millrace {

namespace {

constexpr std::size_t name_max = 249;
constexpr nanoseconds yield_min = std::chrono::seconds{1};
constexpr nanoseconds yield_max = std::chrono::hours{1};
constexpr nanoseconds heartbeat_min = std::chrono::seconds{1};
constexpr nanoseconds heartbeat_max = std::chrono::minutes{5};

[[nodiscard]] bool names_a_topic(std::string_view text) {
    return !text.empty() && text.size() <= name_max && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    });
}

[[nodiscard]] double seconds(nanoseconds span) {
    return std::chrono::duration<double>(span).count();
}

[[nodiscard]] result<void> check_span(
    std::string_view name, nanoseconds value, nanoseconds least, nanoseconds most
) {
    if (value >= least && value <= most) return {};
    return fail(
        errc::invalid_config,
        fmt::format(
            "leadership option {} is {} s; it must be {} s to {} s",
            name,
            seconds(value),
            seconds(least),
            seconds(most)
        )
    );
}

[[nodiscard]] result<void> check_name(std::string_view option, std::string_view value) {
    if (names_a_topic(value)) return {};
    return fail(
        errc::invalid_config,
        fmt::format(
            "leadership option {} is \"{}\"; it must be 1 to {} characters of a-z A-Z 0-9 . _ -",
            option,
            value,
            name_max
        )
    );
}

}  // namespace

result<void> leadership_options::validate() const {
    if (auto ok = check_span("yield_after", yield_after, yield_min, yield_max); !ok) return ok;
    if (by != leadership_way::kafka_group) {
        // Beside processes that elect by the group, a leader by lease would send everything twice.
        if (kafka.empty() && group.empty() && topic.empty() && name.empty()) return {};
        return fail(
            errc::invalid_config,
            "a group, topic, cluster or name of the Kafka group protocol is given, and the leadership is by "
            "lease; choose kafka_group, or leave them out"
        );
    }
    if (auto ok = check_span("heartbeat_timeout", heartbeat_timeout, heartbeat_min, heartbeat_max); !ok)
        return ok;
    if (auto ok = check_name("group", group); !ok) return ok;
    if (topic.starts_with("__")) {
        return fail(
            errc::invalid_config,
            fmt::format("leadership option topic is \"{}\", where brokers take no heartbeats", topic)
        );
    }
    if (!topic.empty()) {
        if (auto ok = check_name("topic", topic); !ok) return ok;
    }
    if (name.find('%') != std::string::npos) {
        return fail(
            errc::invalid_config, "leadership option name has a %, which ends the time in a heartbeat"
        );
    }
    return {};
}

}  // namespace millrace
