#include "avro/encoder.hpp"

#include <fmt/format.h>

namespace millrace::schema {

avro_encoder::avro_encoder(const avro_options& options)
    : how_{
          .style = options.unions == union_style::avro ? avro_writer::unions::named : avro_writer::unions::plain,
          .readable = options.logical == logical_values::readable,
          .ignore_unknown = options.ignore_unknown_fields,
          .bytes_max = options.encoded_bytes_max},
      document_(options.limits) {}

result<void> avro_encoder::encode(const avro_schema& schema, std::string_view json, std::string& out) {
    if (auto read = document_.read(json); !read) {
        return fail(errc::refused_record, std::move(read.error().detail));
    }
    const std::size_t begin = out.size();
    avro_writer writer(schema.plan(), document_, how_, kept_, out);
    if (writer.write(schema.plan().root, json_document::root)) return {};
    out.resize(begin);
    return fail(
        errc::refused_record,
        fmt::format(
            "the value does not fit its Avro schema at {}",
            explain(schema.plan(), document_, writer.fault(), json_keys::may_be_data)
        )
    );
}

}  // namespace millrace::schema
