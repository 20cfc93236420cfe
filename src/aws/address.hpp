/// Addresses of AWS resources as users write them: `SCHEME://REGION[/NAME][?endpoint=URL]`.
///
/// Pure.
#pragma once

#include <millrace/error.hpp>

#include <string>
#include <string_view>

namespace millrace::aws {

struct address {
    std::string region;
    std::string name;      ///< Of the stream or table, or its ARN; may be empty.
    std::string endpoint;  ///< `http://…` or `https://…`; empty: AWS's own.

    bool operator==(const address&) const = default;
};

/// The endpoint stands as it is, without escapes, so it comes last. `invalid_argument` says what is wrong.
[[nodiscard]] result<address> parse_address(std::string_view given);

/// The same checks for addresses with more parameters: `invalid_argument` whose detail follows the address.
[[nodiscard]] result<void> check_region(std::string_view region);
[[nodiscard]] result<void> check_endpoint(std::string_view url);

}  // namespace millrace::aws
