#include "avro/parser.hpp"
#include "avro/values.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

struct logical_type {
    avro_logical logical;
    avro_kind kind;
};

constexpr std::array on_primitives{
    logical_type{avro_logical::date, avro_kind::int_},
    logical_type{avro_logical::time_millis, avro_kind::int_},
    logical_type{avro_logical::time_micros, avro_kind::long_},
    logical_type{avro_logical::timestamp_millis, avro_kind::long_},
    logical_type{avro_logical::timestamp_micros, avro_kind::long_},
    logical_type{avro_logical::local_timestamp_millis, avro_kind::long_},
    logical_type{avro_logical::local_timestamp_micros, avro_kind::long_},
    logical_type{avro_logical::uuid, avro_kind::string}};

/// The decimal digits that a fixed of `bytes` holds for every value.
double digits_of(std::uint32_t bytes) {
    return bytes == 0 ? 0 : std::floor((8.0 * bytes - 1) * std::log10(2.0));
}

/// An absent number is `absent`; nothing when the member is no whole number from 0.
std::optional<std::uint32_t> small_number(
    const json_document& document, json_document::index object, std::string_view key, std::uint32_t absent
) {
    const auto token = document.member(object, key);
    if (token == json_document::none) return absent;
    if (document.at(token).kind != json_kind::number) return std::nullopt;
    const auto text = document.text(token);
    std::uint32_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

result<void> avro_parser::add_logical(index token, std::uint32_t made) {
    const auto member = document_.member(token, "logicalType");
    if (member == json_document::none || document_.at(member).kind != json_kind::string) return {};
    const auto name = document_.text(member);
    auto& node = plan_.nodes[made];
    const bool raw = node.kind == avro_kind::bytes || node.kind == avro_kind::fixed;
    if (raw && name == name_of(avro_logical::decimal)) return add_decimal(token, node);
    if (node.kind == avro_kind::fixed && node.count == 12 && name == name_of(avro_logical::duration)) {
        node.logical = avro_logical::duration;
    }
    for (const auto& type : on_primitives) {
        if (node.kind == type.kind && name == name_of(type.logical)) node.logical = type.logical;
    }
    return {};
}

result<void> avro_parser::add_decimal(index token, avro_node& node) {
    const auto precision = small_number(document_, token, "precision", 0);
    const auto scale = small_number(document_, token, "scale", 0);
    if (!precision || !scale || *precision == 0 || *scale > *precision) return {};
    if (node.kind == avro_kind::fixed && *precision > digits_of(node.count)) return {};
    if (*precision > decimal_digits_max) {
        return wrong(
            token, fmt::format("a decimal of more than {} digits is not supported", decimal_digits_max)
        );
    }
    if (node.kind == avro_kind::fixed && node.count > decimal_fixed_bytes_max) {
        return wrong(
            token,
            fmt::format(
                "a decimal in a fixed of more than {} bytes is not supported", decimal_fixed_bytes_max
            )
        );
    }
    node.logical = avro_logical::decimal;
    node.precision = static_cast<std::uint16_t>(*precision);
    node.scale = static_cast<std::uint16_t>(*scale);
    return {};
}

}  // namespace millrace::schema
