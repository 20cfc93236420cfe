/// A compiled Avro schema: flat tables that refer to each other by index, so recursion costs nothing and a
/// schema of many types takes little memory. Plain data; made by `parse_avro_schema`, walked by the encoder.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::schema {

enum class avro_kind : std::uint8_t {
    null,
    boolean,
    int_,
    long_,
    float_,
    double_,
    bytes,
    string,
    record,
    enumeration,
    array,
    map,
    union_,
    fixed
};

enum class avro_logical : std::uint8_t {
    none,
    decimal,
    date,
    time_millis,
    time_micros,
    timestamp_millis,
    timestamp_micros,
    local_timestamp_millis,
    local_timestamp_micros,
    uuid,
    duration
};

/// A piece of `avro_plan::texts`.
struct avro_text {
    std::uint32_t at{0};
    std::uint32_t size{0};
};

struct avro_node {
    avro_kind kind{avro_kind::null};
    avro_logical logical{avro_logical::none};
    std::uint16_t precision{0};
    std::uint16_t scale{0};

    /// record: its first field; enumeration: its first symbol; union: its first entry in `branches`;
    /// array and map: the node of the items.
    std::uint32_t first{0};

    /// record: fields; enumeration: symbols; union: branches; fixed: bytes.
    std::uint32_t count{0};

    /// record and enumeration: its first entry in `by_name`.
    std::uint32_t sorted{0};

    /// The full name of a named type.
    avro_text name;
};

struct avro_field {
    avro_text name;
    std::uint32_t node{0};
    bool has_default{false};
    std::uint32_t default_at{0};  ///< In `defaults`, encoded.
    std::uint32_t default_size{0};
};

struct avro_plan {
    std::vector<avro_node> nodes;
    std::vector<avro_field> fields;
    std::vector<avro_text> symbols;
    std::vector<std::uint32_t> branches;  ///< Nodes.
    std::vector<std::uint32_t>
        by_name;  ///< Places among the fields of a record or the symbols of an enumeration.
    std::string texts;
    std::string defaults;
    std::uint32_t root{0};

    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    [[nodiscard]] std::string_view text(avro_text t) const noexcept {
        return std::string_view(texts).substr(t.at, t.size);
    }
    [[nodiscard]] std::string_view field_name(const avro_node& record, std::uint32_t place) const noexcept {
        return text(fields[record.first + place].name);
    }

    /// The place of a field in its record or of a symbol in its enumeration; `none` when there is none.
    [[nodiscard]] std::uint32_t find_field(const avro_node& record, std::string_view name) const noexcept;
    [[nodiscard]] std::uint32_t find_symbol(const avro_node& enumeration, std::string_view name)
        const noexcept;

    /// The name of a branch in Avro's JSON encoding: the full name of a named type, else the name of the
    /// type.
    [[nodiscard]] std::string_view branch_name(const avro_node& node) const noexcept;
};

/// `int`, `record`, ...
[[nodiscard]] std::string_view name_of(avro_kind kind) noexcept;

/// `timestamp-millis`, ...; empty for `none`.
[[nodiscard]] std::string_view name_of(avro_logical logical) noexcept;

/// For messages: `int`, `decimal(10, 2)`, `record com.acme.Order`, `enum com.acme.Colour (RED, GREEN)`.
[[nodiscard]] std::string describe(const avro_plan& plan, std::uint32_t node);

}  // namespace millrace::schema
