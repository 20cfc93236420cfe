#include "record_size.hpp"

#include <bit>
#include <cstdint>

namespace millrace::kafka {

namespace {

/// Of a length that is not negative, as a zigzag varint.
constexpr std::size_t varint_bytes(std::size_t length) noexcept {
    const auto bits =
        static_cast<std::size_t>(std::bit_width((static_cast<std::uint64_t>(length) << 1U) | 1U));
    return (bits + 6) / 7;
}

constexpr std::size_t with_length(std::size_t bytes) noexcept {
    return varint_bytes(bytes) + bytes;
}

/// Absent bytes are the length -1, which takes one byte as 0 does.
std::size_t of(const std::optional<std::string_view>& bytes) noexcept {
    return with_length(bytes ? bytes->size() : 0);
}

}  // namespace

std::size_t header_bytes(std::size_t name, std::size_t value) noexcept {
    return with_length(name) + with_length(value);
}

std::size_t record_bytes(const outbox_row& row, std::size_t extra_header_bytes) noexcept {
    constexpr std::size_t attributes_and_deltas = 3;
    auto body = attributes_and_deltas + of(row.key) + of(row.value) + extra_header_bytes;
    const auto headers = row.headers.size() + (extra_header_bytes > 0 ? 1 : 0);
    body += varint_bytes(headers);
    for (const auto& header : row.headers)
        body += header_bytes(header.name.size(), header.value ? header.value->size() : 0);
    return with_length(body);
}

}  // namespace millrace::kafka
