/// What an application writes into its outbox.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace {

/// A header: its name is text, its value any bytes; a missing value is kept apart from an empty one.
struct header {
    std::string name;
    std::optional<std::string> value;

    bool operator==(const header&) const = default;
};

/// An event owns its bytes. Key and value may hold any bytes, zero included.
struct event {
    std::string topic;

    /// Events of one topic and key keep their order. Without a key an event has no order and stands alone.
    std::optional<std::string> key;

    /// No value is a tombstone: a delete marker for compacted topics.
    std::optional<std::string> value;

    std::vector<header> headers;

    /// Only for sinks with numbered partitions; part of the lane.
    std::optional<std::int32_t> partition;

    bool operator==(const event&) const = default;
};

}  // namespace millrace
