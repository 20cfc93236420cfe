/// The addresses of outboxes, streams, sinks and states, as users write them.
///
/// `sqlite:PATH` (outbox, state, dead letters), `local:PATH/STREAM` (stream, dead letters), `local:PATH`
/// (sink), `memory:` or `memory:NAME` (state within one process). Pure functions; nothing is opened.
#pragma once

#include <millrace/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

/// What an address is to be used for; decides which schemes are valid.
enum class url_role : std::uint8_t { outbox, sink, stream, state, dead_letters };

struct url {
    url_role role{url_role::state};
    std::string given;   ///< As written by the user; messages name it so.
    std::string scheme;  ///< Without the colon.
    std::string path;    ///< What follows the colon; for a stream, the file.
    std::string stream;  ///< Only of `local:PATH/STREAM`.

    bool operator==(const url&) const = default;
};

/// `invalid_argument` says what is wrong with the address, which schemes exist for the role and, for a
/// misspelt one, which is nearest.
[[nodiscard]] result<url> parse_url(std::string_view given, url_role role);

}  // namespace millrace
