/// Bytes as text: base64 (RFC 4648, padded), and whether bytes are valid UTF-8. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace {

[[nodiscard]] std::string to_base64(std::string_view bytes);

/// Nothing when `text` is not strict base64: padded, without blanks, with zero bits behind the last byte.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

/// No overlong forms, no surrogates, nothing above U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

}  // namespace millrace
