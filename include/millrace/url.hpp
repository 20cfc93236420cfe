/// The addresses of outboxes, streams, sinks and states, as users write them.
///
/// | | outbox | sink | stream | state | dead letters |
/// |---|---|---|---|---|---|
/// | `sqlite:PATH` | yes | | | yes | an outbox |
/// | `postgresql://…`, as libpq takes it | `?table=SCHEMA.NAME` | | | `?schema=NAME` | an outbox |
/// | `dynamodb://REGION/TABLE[?endpoint=URL]` | | | | yes | |
/// | `local:PATH` | | yes | | | |
/// | `local:PATH/STREAM` | | | yes | | yes |
/// | `kafka://HOST:PORT[,…][?PROPERTY=VALUE&…]` | | yes | | | with `/TOPIC` |
/// | `kinesis://REGION[/STREAM][?endpoint=URL]` | | yes | with `/STREAM` | | |
/// | `memory:NAME`, within one process | | | | yes | |
///
/// The positions that another consumer kept are in `dynamodb://REGION/TABLE` or `postgresql://…?table=NAME`.
/// Pure functions; nothing is opened.
#pragma once

#include <millrace/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

/// What an address is to be used for; decides which schemes are valid.
enum class url_role : std::uint8_t { outbox, sink, stream, state, dead_letters, positions };

struct url {
    url_role role{url_role::state};
    std::string given;   ///< As written by the user, secrets as `***`; messages name it so.
    std::string scheme;  ///< Without the colon; `postgresql` also for `postgres`.

    /// What follows the colon; for a stream, the file. Of a server the whole address, secrets and all,
    /// without the topic of dead letters.
    std::string path;

    std::string stream;  ///< Only of `local:PATH/STREAM` and `kafka://…/TOPIC`.

    bool operator==(const url&) const = default;
};

/// `invalid_argument` says what is wrong with the address, which schemes exist for the role and, for a
/// misspelt one, which is nearest; `invalid_config` what is wrong with a server's settings in it. Neither
/// shows a secret.
[[nodiscard]] result<url> parse_url(std::string_view given, url_role role);

/// An address, well formed or not, fit for logs and messages: passwords and other secrets are `***`.
[[nodiscard]] std::string without_secrets(std::string_view address);

}  // namespace millrace
