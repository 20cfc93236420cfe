/// How JSON is taken for Avro: the choices that a rule gives to the encoder. Plain data.
#pragma once

#include "json/document.hpp"

#include <cstddef>
#include <cstdint>

namespace millrace::schema {

enum class union_style : std::uint8_t {
    avro,  ///< null, or an object with one member: the branch's name and the value.

    /// The value alone. Of the branches that take a value of its kind, the most specific that fits:
    /// - a number without point and exponent: int, long, decimal, double, float; with one: decimal, double,
    ///   float, int, long;
    /// - a string: enum, uuid, date, time and timestamp, decimal, fixed, string, bytes, double, float;
    /// - an object: record, duration, map. Among equals the first in the schema.
    plain
};

enum class logical_values : std::uint8_t {
    readable,
    avro  ///< Exactly Avro's JSON encoding: logical types as the type that they are built on.
};

struct avro_options {
    union_style unions{union_style::avro};
    logical_values logical{logical_values::readable};

    /// Members that the record does not have are left out instead of refused.
    bool ignore_unknown_fields{false};

    json_limits limits;

    /// Encoded, a value may be far larger than its text: absent fields take their defaults.
    std::size_t encoded_bytes_max{16 * 1024 * 1024};
};

}  // namespace millrace::schema
