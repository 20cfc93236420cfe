/// Encodes JSON text as Avro by a schema.
///
/// What is taken, beside Avro's own JSON encoding:
/// - int, long: any number with a whole value in range (`1`, `1.0`, `1e3`). float, double: numbers, and
/// `"NaN"`,
///   `"Infinity"`, `"INF"`, `"-Infinity"`, `"-INF"`; a number too large is refused, one too small becomes
///   zero.
/// - bytes, fixed: strings of characters U+0000 to U+00FF, one for each byte.
/// - with `logical_values::readable`, decimal: a number or its digits in a string, exactly, never rounded;
///   date, time, timestamp: ISO 8601 text (a timestamp with its zone, a local one without), never finer than
///   the type, or the number; uuid: its 36 characters; duration: `{"months": 1, "days": 2, "millis": 3}`.
/// - a missing field takes its default; a name that stands twice in an object is refused.
///
/// Keeps its memory between values, so a value costs no allocation but the growth of the output. Not
/// thread-safe.
#pragma once

#include "avro/options.hpp"
#include "avro/schema.hpp"
#include "avro/writer.hpp"
#include "json/document.hpp"

#include <millrace/error.hpp>

#include <string>
#include <string_view>

namespace millrace::schema {

class avro_encoder {
public:
    explicit avro_encoder(const avro_options& options = {});

    /// Appends the value to `out`, or leaves `out` as it was and says in the error (`refused_record`) where
    /// the value does not fit, what was expected and what kind of value was found, never the value.
    [[nodiscard]] result<void> encode(const avro_schema& schema, std::string_view json, std::string& out);

private:
    avro_writer::options how_;
    json_document document_;
    avro_writer::scratch kept_;
};

}  // namespace millrace::schema
