#include "avro/schema.hpp"

#include "avro/parser.hpp"
#include "avro/writer.hpp"
#include "json/utf8.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::schema {

std::size_t avro_schema::bytes() const noexcept {
    const auto of = [](const auto& table) {
        return table.capacity() * sizeof(typename std::remove_cvref_t<decltype(table)>::value_type);
    };
    return sizeof(*this) + of(plan_.nodes) + of(plan_.fields) + of(plan_.symbols) + of(plan_.branches) +
           of(plan_.by_name) + of(plan_.texts) + of(plan_.defaults);
}

result<std::uint32_t> avro_parser::read(std::string_view json) {
    if (auto read = document_.read(json); !read)
        return fail(read.error().code, "its text: " + read.error().detail);
    defaults_.clear();
    auto root = type(json_document::root, {});
    if (!root) return root;
    return compile_defaults().map([&] { return *root; });
}

result<void> avro_parser::compile_defaults() {
    for (auto& waiting : defaults_) {
        if (auto compiled = compile_default(waiting); !compiled) return compiled;
    }
    return {};
}

/// A default that leaves out a field takes that field's default, which is then compiled first.
result<void> avro_parser::compile_default(waiting_default& waiting) {
    auto& field = plan_.fields[waiting.field];
    if (field.default_size != avro_plan::none) return {};
    if (waiting.under_way) return wrong(waiting.token, "the default needs itself");
    waiting.under_way = true;
    avro_writer::scratch kept;
    std::string encoded;
    for (;;) {
        encoded.clear();
        const avro_writer::options how{
            .style = avro_writer::unions::in_order,
            .readable = false,
            .bytes_max = limits_.default_bytes_max};
        avro_writer writer(plan_, document_, how, kept, encoded);
        if (writer.write(field.node, waiting.token)) break;
        const auto& fault = writer.fault();
        if (fault.what != avro_fault::kind::default_not_ready) {
            return fail(
                errc::invalid_argument,
                fmt::format(
                    "the default does not fit its type: {}",
                    explain(plan_, document_, fault, json_keys::are_names)
                )
            );
        }
        const auto needed =
            std::find_if(defaults_.begin(), defaults_.end(), [&](const waiting_default& other) {
                return other.field == fault.detail;
            });
        if (auto compiled = compile_default(*needed); !compiled) return compiled;
    }
    if (plan_.defaults.size() + encoded.size() > limits_.default_bytes_max) {
        return wrong(
            waiting.token,
            fmt::format("all defaults together take more than {} bytes", limits_.default_bytes_max)
        );
    }
    field.default_at = static_cast<std::uint32_t>(plan_.defaults.size());
    field.default_size = static_cast<std::uint32_t>(encoded.size());
    plan_.defaults.append(encoded);
    return {};
}

result<avro_schema> parse_avro_schema(
    std::string_view json, std::span<const avro_reference> references, const avro_limits& limits
) {
    avro_parser parser(limits);
    for (const auto& reference : references) {
        if (auto read = parser.read(reference.schema); !read) {
            return fail(
                read.error().code,
                fmt::format(
                    "the Avro schema of the reference \"{}\" is wrong at {}",
                    shortened(reference.name),
                    read.error().detail
                )
            );
        }
    }
    const auto root = parser.read(json);
    if (!root)
        return fail(root.error().code, fmt::format("the Avro schema is wrong at {}", root.error().detail));
    return std::move(parser).finish(*root);
}

}  // namespace millrace::schema
