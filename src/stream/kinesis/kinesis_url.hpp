/// The addresses of Kinesis: `kinesis://REGION/STREAM[?endpoint=URL]` for one stream, by name or by ARN, and
/// `kinesis://REGION[?endpoint=URL]` for all streams of a region, as a sink is named.
///
/// A sink's address may have parameters before the endpoint: `headers=drop|refuse`, `tombstones=refuse|empty`
/// and `record_bytes_max=BYTES`. The endpoint's URL is taken as it stands, to the end of the address. Pure
/// functions; errors name the address as it was given, without a password that has no place in it.
#pragma once

#include "kinesis/messages.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

/// What a sink does with what a Kinesis record has no place for.
struct kinesis_losses {
    bool drop_headers{true};       ///< False: a row with headers is refused.
    bool empty_tombstones{false};  ///< True: no value becomes no bytes; consumers cannot tell them apart.

    /// Of key and data: 1 KiB to 10 MiB, not above what the stream is set to.
    std::size_t record_bytes_max{1 << 20};

    bool operator==(const kinesis_losses&) const = default;
};

struct kinesis_address {
    std::string region;
    std::string stream;                      ///< Name or ARN; empty: none.
    std::string endpoint;                    ///< `http://HOST:PORT`; empty: the region's own.
    std::optional<kinesis_losses> losses{};  ///< Of the parameters; none were given.

    [[nodiscard]] bool by_arn() const noexcept { return stream.starts_with("arn:"); }

    /// The name, also of an ARN.
    [[nodiscard]] std::string name() const;

    /// As requests name it.
    [[nodiscard]] aws::kinesis::stream_name wire_name() const;

    bool operator==(const kinesis_address&) const = default;
};

[[nodiscard]] result<kinesis_address> parse_kinesis_url(std::string_view url);

/// `invalid_argument` unless the name has 1 to 128 letters, digits, dots, underscores and hyphens.
[[nodiscard]] result<void> check_kinesis_stream_name(std::string_view name);

}  // namespace millrace
