/// The figures of a relay and of a consumer, each by name and meaning. Pure.
#pragma once

#include <millrace/consumer.hpp>
#include <millrace/relay.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace millrace::app {

struct figure {
    std::string_view name;  ///< Without `millrace_relay_`, `millrace_schema_`, ....
    std::string_view help;
    bool counter{false};
    std::optional<double> value;  ///< Nothing while it is unknown.
};

/// Always the same figures in the same order, whatever is unknown.
[[nodiscard]] std::vector<figure> figures_of(const relay_status& s);
[[nodiscard]] std::vector<figure> figures_of(const schema_status& s);
[[nodiscard]] std::vector<figure> figures_of(const consumer_status& s);
[[nodiscard]] std::vector<figure> figures_of(const shard_progress& s);

}  // namespace millrace::app
