/// One reading of an Avro schema and of what it refers to; `parse_avro_schema` is the way in.
#pragma once

#include "avro/schema.hpp"
#include "json/document.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace::schema {

class avro_parser {
public:
    explicit avro_parser(const avro_limits& limits);

    /// Reads one document into the plan and gives its type. Its named types stay known to the next.
    [[nodiscard]] result<std::uint32_t> read(std::string_view json);

    [[nodiscard]] avro_schema finish(std::uint32_t root) &&;

private:
    using index = json_document::index;
    struct waiting_default {
        std::uint32_t field;
        index token;
        bool under_way{false};
    };

    result<std::uint32_t> type(index token, std::string_view space);
    result<std::uint32_t> named_type(index token, std::string_view name, std::string_view space);
    result<std::uint32_t> object_type(index token, std::string_view space);
    result<std::uint32_t> union_type(index token, std::string_view space);
    result<std::uint32_t> items_type(index token, avro_kind kind, std::string_view space);
    result<std::uint32_t> record_type(index token, std::string_view space);
    result<void> record_fields(index token, std::uint32_t record, std::string_view space);
    result<avro_field> record_field(index token, std::string_view space);
    result<std::uint32_t> enum_type(index token, std::string_view space);
    result<std::uint32_t> fixed_type(index token, std::string_view space);
    result<void> check_union(index token, const std::vector<std::uint32_t>& branches);

    result<std::uint32_t> new_node(index token, avro_kind kind);
    result<std::uint32_t> new_named_node(index token, avro_kind kind, std::string_view space);
    result<void> add_logical(index token, std::uint32_t node);
    result<void> add_decimal(index token, avro_node& node);
    void sort_names(avro_node& node, const std::vector<std::string_view>& names);
    avro_text keep(std::string_view text);

    result<void> compile_defaults();
    result<void> compile_default(waiting_default& waiting);

    tl::unexpected<error> wrong(index token, std::string_view why) const;
    result<std::string_view> required_text(index object, std::string_view key) const;
    result<index> required(index object, std::string_view key, json_kind kind) const;

    avro_limits limits_;
    avro_plan plan_;
    json_document document_;
    std::unordered_map<std::string, std::uint32_t> named_;
    std::vector<waiting_default> defaults_;
};

}  // namespace millrace::schema
