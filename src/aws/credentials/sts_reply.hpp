/// Reads the XML that STS answers with. Pure.
///
/// Only as much of XML as STS writes: elements, text, the five named entities and numeric ones. Anything
/// else is refused.
#pragma once

#include "keys.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace::aws {

constexpr std::size_t sts_bytes_max = std::size_t{64} << 10;

/// The keys in `<Credentials>`. Messages begin with `source` and hold nothing of the reply.
[[nodiscard]] result<aws_keys> read_sts_keys(std::string_view xml, std::string_view source);

struct sts_failure {
    std::string code;     ///< "AccessDenied"; empty when the reply is no error of STS.
    std::string message;  ///< Fit for a message.
};

[[nodiscard]] sts_failure read_sts_failure(std::string_view xml);

}  // namespace millrace::aws
