/// Base64 (RFC 4648, padded) for payloads, fast: four characters at a time by table. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::aws::kinesis {

void append_base64(std::string& out, std::string_view bytes);

/// Writes the bytes to `out`, which has room for three bytes for each four characters and may be the text's
/// own place; returns how many. Nothing when `text` is not padded base64; then `out` is spoilt.
[[nodiscard]] std::optional<std::size_t> write_from_base64(char* out, std::string_view text) noexcept;

/// Appends the bytes; false, with `out` as it was, when `text` is not padded base64.
[[nodiscard]] bool append_from_base64(std::string& out, std::string_view text);

}  // namespace millrace::aws::kinesis
