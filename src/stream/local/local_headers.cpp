#include "local_headers.hpp"

#include <cstdint>
#include <optional>

namespace millrace {

namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::uint32_t no_value = 0xFFFF'FFFF;

void put_length(std::uint32_t length, std::string& to) {
    for (const auto shift : {24U, 16U, 8U, 0U})
        to.push_back(static_cast<char>((length >> shift) & 0xFFU));
}

/// Takes a length off the front; nothing when the bytes end.
std::optional<std::uint32_t> take_length(std::string_view& from) {
    if (from.size() < length_bytes) return std::nullopt;
    std::uint32_t length = 0;
    for (const char c : from.substr(0, length_bytes))
        length = (length << 8U) | static_cast<unsigned char>(c);
    from.remove_prefix(length_bytes);
    return length;
}

std::optional<std::string_view> take_bytes(std::string_view& from, std::uint32_t length) {
    if (from.size() < length) return std::nullopt;
    const auto bytes = from.substr(0, length);
    from.remove_prefix(length);
    return bytes;
}

}  // namespace

void encode_headers(std::span<const record_header> headers, std::string& to) {
    for (const auto& h : headers) {
        put_length(static_cast<std::uint32_t>(h.name.size()), to);
        to.append(h.name);
        put_length(h.value ? static_cast<std::uint32_t>(h.value->size()) : no_value, to);
        if (h.value) to.append(*h.value);
    }
}

std::size_t encoded_size(std::span<const record_header> headers) noexcept {
    std::size_t size = 0;
    for (const auto& h : headers)
        size += 2 * length_bytes + h.name.size() + (h.value ? h.value->size() : 0);
    return size;
}

result<std::vector<record_header>> decode_headers(std::string_view encoded) {
    const auto cut = [] { return fail(errc::corrupt, "the encoded headers end too early"); };
    std::vector<record_header> headers;
    while (!encoded.empty()) {
        record_header h;
        const auto name_length = take_length(encoded);
        if (!name_length) return cut();
        const auto name = take_bytes(encoded, *name_length);
        if (!name) return cut();
        h.name = *name;
        const auto value_length = take_length(encoded);
        if (!value_length) return cut();
        if (*value_length != no_value) {
            h.value = take_bytes(encoded, *value_length);
            if (!h.value) return cut();
        }
        headers.push_back(h);
    }
    return headers;
}

}  // namespace millrace
