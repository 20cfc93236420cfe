/// How the headers of a record are kept in one blob. The format stands in docs/local-stream-format.md.
#pragma once

#include <millrace/error.hpp>
#include <millrace/record.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

/// Appends the encoded headers; nothing for none. Names and values are below 4 GiB each.
void encode_headers(std::span<const record_header> headers, std::string& to);

/// Bytes that `encode_headers` appends.
[[nodiscard]] std::size_t encoded_size(std::span<const record_header> headers) noexcept;

/// Views into `encoded`. `corrupt` when the bytes are not what `encode_headers` writes.
[[nodiscard]] result<std::vector<record_header>> decode_headers(std::string_view encoded);

}  // namespace millrace
