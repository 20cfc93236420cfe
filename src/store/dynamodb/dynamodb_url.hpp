/// The address of a state in DynamoDB: `dynamodb://REGION/TABLE[?endpoint=URL]`.
///
/// Pure.
#pragma once

#include "address.hpp"

#include <millrace/error.hpp>

#include <string_view>

namespace millrace {

/// The error names the address as it is shown, without secrets.
[[nodiscard]] result<aws::address> parse_dynamodb_url(std::string_view given, std::string_view shown);

}  // namespace millrace
