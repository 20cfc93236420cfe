/// PostgreSQL's binary format of the few types that Millrace exchanges with it.
///
/// Pure functions. Decoders take any bytes: whatever is not of the type is `nullopt`.
#pragma once

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace millrace::postgres {

/// Types by their fixed object ids.
enum class type_id : std::uint32_t {
    unknown = 0,
    boolean = 16,
    bytea = 17,
    int8 = 20,
    int4 = 23,
    text = 25,
    bytea_array = 1001,
    text_array = 1009,
    int8_array = 1016,
    timestamptz = 1184
};

void append_integer(std::string& out, std::int64_t value);
void append_boolean(std::string& out, bool value);

/// Times beyond what PostgreSQL can store become its first or last.
void append_time(std::string& out, wall_time value);

void append_array(std::string& out, std::span<const std::int64_t> values);
void append_array(std::string& out, type_id element, std::span<const std::optional<std::string_view>> values);

/// Of smallint, integer, bigint and oid, by their length.
[[nodiscard]] std::optional<std::int64_t> decode_integer(std::string_view bytes);
[[nodiscard]] std::optional<bool> decode_boolean(std::string_view bytes);

/// Of timestamptz, microseconds cut off; `infinity` is no time.
[[nodiscard]] std::optional<wall_time> decode_time(std::string_view bytes);

/// Walks through an array of one dimension, or an empty one; elements are views into `bytes`.
class array_reader {
public:
    /// `nullopt` when the header is not that of such an array.
    [[nodiscard]] static std::optional<array_reader> open(std::string_view bytes);

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] type_id element() const noexcept { return element_; }

    struct item {
        std::optional<std::string_view> value;  ///< Empty: NULL.
    };
    /// Call `size()` times. `nullopt` when the array is broken off, or has bytes behind its last element.
    [[nodiscard]] std::optional<item> next();

private:
    std::string_view rest_;
    std::size_t size_{0};
    std::size_t taken_{0};
    type_id element_{type_id::unknown};
};

}  // namespace millrace::postgres
