/// The addresses of local streams: `local:PATH/STREAM` for one stream, `local:PATH` for the file.
#pragma once

#include <millrace/error.hpp>

#include <string>
#include <string_view>

namespace millrace {

struct local_address {
    std::string file;
    std::string stream;

    bool operator==(const local_address&) const = default;
};

/// Reads `local:PATH/STREAM`: the last component names the stream, what stands before it the file.
/// `invalid_argument` names the URL as it was given.
[[nodiscard]] result<local_address> parse_local_stream(std::string_view url);

/// Reads `local:PATH`, as a sink is named: the topic of each event names the stream.
[[nodiscard]] result<std::string> parse_local_file(std::string_view url);

/// `invalid_argument` unless the name has 1 to 249 letters, digits, dots, underscores and hyphens (the rule
/// of Kafka's topics) and is neither `.` nor `..`.
[[nodiscard]] result<void> check_stream_name(std::string_view name);

}  // namespace millrace
