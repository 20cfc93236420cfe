/// How JSON is taken for Avro: the choices that a rule gives to the encoder. Plain data.
#pragma once

#include "json/document.hpp"

#include <millrace/schemas.hpp>

#include <cstddef>

namespace millrace::schema {

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
