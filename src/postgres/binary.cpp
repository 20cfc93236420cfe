#include "binary.hpp"

#include <algorithm>
#include <chrono>

namespace millrace::postgres {

namespace {

// PostgreSQL counts microseconds from here, and ends at 294276-12-31.
constexpr auto time_zero = std::chrono::sys_days{std::chrono::year{2000} / 1 / 1};
constexpr std::int64_t time_last = 9'223'371'331'199'999'999;
constexpr std::int64_t time_first = -211'813'488'000'000'000;  // 4714-11-24 BC

template <class Unsigned>
void append_bytes(std::string& out, Unsigned value) {
    for (std::size_t i = sizeof value; i-- > 0;)
        out += static_cast<char>(static_cast<unsigned char>(value >> (i * 8)));
}

std::uint64_t big_endian(std::string_view bytes) {
    std::uint64_t value = 0;
    for (const char c : bytes)
        value = value << 8 | static_cast<unsigned char>(c);
    return value;
}

void append_array_header(std::string& out, type_id element, std::size_t size, bool nulls) {
    append_bytes<std::uint32_t>(out, size == 0 ? 0 : 1);  // dimensions
    append_bytes<std::uint32_t>(out, nulls ? 1 : 0);
    append_bytes(out, static_cast<std::uint32_t>(element));
    if (size == 0) return;
    append_bytes(out, static_cast<std::uint32_t>(size));
    append_bytes<std::uint32_t>(out, 1);  // lower bound
}

/// Takes a signed 32-bit number off the front.
std::optional<std::int32_t> take_int32(std::string_view& rest) {
    if (rest.size() < 4) return std::nullopt;
    const auto value = static_cast<std::uint32_t>(big_endian(rest.substr(0, 4)));
    rest.remove_prefix(4);
    return static_cast<std::int32_t>(value);
}

}  // namespace

void append_integer(std::string& out, std::int64_t value) {
    append_bytes(out, static_cast<std::uint64_t>(value));
}

void append_boolean(std::string& out, bool value) {
    out += value ? '\1' : '\0';
}

void append_time(std::string& out, wall_time value) {
    constexpr std::int64_t zero =
        std::chrono::duration_cast<milliseconds>(time_zero.time_since_epoch()).count();
    const auto unix_millis =
        std::clamp(value.time_since_epoch().count(), time_first / 1'000 + zero, time_last / 1'000 + zero);
    append_integer(out, (unix_millis - zero) * 1'000);
}

void append_array(std::string& out, std::span<const std::int64_t> values) {
    append_array_header(out, type_id::int8, values.size(), false);
    for (const auto value : values) {
        append_bytes<std::uint32_t>(out, 8);
        append_integer(out, value);
    }
}

void append_array(
    std::string& out, type_id element, std::span<const std::optional<std::string_view>> values
) {
    const bool nulls =
        std::any_of(values.begin(), values.end(), [](const auto& v) { return !v.has_value(); });
    append_array_header(out, element, values.size(), nulls);
    for (const auto& value : values) {
        append_bytes(out, value ? static_cast<std::uint32_t>(value->size()) : ~std::uint32_t{0});
        if (value) out += *value;
    }
}

std::optional<std::int64_t> decode_integer(std::string_view bytes) {
    const auto value = big_endian(bytes.substr(0, 8));
    switch (bytes.size()) {
        case 2:
            return static_cast<std::int16_t>(value);
        case 4:
            return static_cast<std::int32_t>(value);
        case 8:
            return static_cast<std::int64_t>(value);
        default:
            return std::nullopt;
    }
}

std::optional<bool> decode_boolean(std::string_view bytes) {
    if (bytes.size() != 1 || static_cast<unsigned char>(bytes.front()) > 1) return std::nullopt;
    return bytes.front() == '\1';
}

std::optional<wall_time> decode_time(std::string_view bytes) {
    if (bytes.size() != 8) return std::nullopt;
    const auto micros = static_cast<std::int64_t>(big_endian(bytes));
    if (micros < time_first || micros > time_last) return std::nullopt;
    return std::chrono::floor<milliseconds>(time_zero) +
           std::chrono::floor<milliseconds>(std::chrono::microseconds{micros});
}

std::optional<array_reader> array_reader::open(std::string_view bytes) {
    array_reader made;
    const auto dimensions = take_int32(bytes);
    const auto flags = take_int32(bytes);
    const auto element = take_int32(bytes);
    if (!dimensions || !flags || !element) return std::nullopt;
    made.element_ = static_cast<type_id>(static_cast<std::uint32_t>(*element));
    if (*dimensions == 0) return bytes.empty() ? std::optional(made) : std::nullopt;
    const auto size = take_int32(bytes);
    const auto lower = take_int32(bytes);
    if (*dimensions != 1 || !size || *size < 0 || !lower) return std::nullopt;
    // Each element has four bytes of length: no header can promise more than there is.
    if (static_cast<std::size_t>(*size) > bytes.size() / 4) return std::nullopt;
    if (*size == 0 && !bytes.empty()) return std::nullopt;
    made.size_ = static_cast<std::size_t>(*size);
    made.rest_ = bytes;
    return made;
}

std::optional<array_reader::item> array_reader::next() {
    if (taken_ == size_) return std::nullopt;
    const auto length = take_int32(rest_);
    if (!length || *length < -1) return std::nullopt;
    item found;
    if (*length >= 0) {
        const auto bytes = static_cast<std::size_t>(*length);
        if (bytes > rest_.size()) return std::nullopt;
        found.value = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
    }
    if (++taken_ == size_ && !rest_.empty()) return std::nullopt;
    return found;
}

}  // namespace millrace::postgres
