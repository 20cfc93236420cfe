/// One reading of a JSON Schema; `parse_json_schema` is the way in.
#pragma once

#include "json_schema/schema.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::schema {

class json_schema_compiler {
public:
    explicit json_schema_compiler(const json_schema_limits& limits) : limits_(limits) {}

    [[nodiscard]] result<json_schema> compile(
        std::string_view json, std::span<const json_reference> references
    );

private:
    using index = json_document::index;

    /// A value in one of the documents.
    struct place {
        std::uint32_t document{0};
        index token{0};
        auto operator<=>(const place&) const = default;
    };
    /// A schema with an id, within which references are meant relative to it.
    struct scope {
        place at;
        index end{0};
        std::string base;
    };
    struct waiting_node {
        std::uint32_t node;
        place at;
    };

    result<void> add_document(std::string_view json, std::string_view uri);
    result<void> check_draft(std::uint32_t document);
    void add_ids(place at, const std::string& base);
    [[nodiscard]] std::string_view base_of(place at) const;
    index quick_member(place object, std::string_view key);
    [[nodiscard]] std::string own_base(place at, const std::string& base) const;
    [[nodiscard]] index id_of(place at) const;
    result<place> target_of(place reference);
    result<place> step_down(place at, std::string_view pointer, place reference);

    /// The node of the schema there, which is filled later.
    result<std::uint32_t> node(place at);
    result<std::uint32_t> follow(place at);
    result<void> fill(std::uint32_t made, place at);
    result<void> add_keyword(
        place at, std::string_view key, index value, std::vector<json_plan::rule>& rules
    );
    result<void> add_type(place value, std::vector<json_plan::rule>& rules);
    result<void> add_number(place value, json_keyword keyword, std::vector<json_plan::rule>& rules);
    result<void> add_exclusive(place at, place value, bool minimum, std::vector<json_plan::rule>& rules);
    result<void> add_limit(place value, json_keyword keyword, std::vector<json_plan::rule>& rules);
    result<void> add_pattern(place value, std::vector<json_plan::rule>& rules);
    result<void> add_names(place value, std::vector<json_plan::rule>& rules);
    result<void> add_list(place value, json_keyword keyword, std::vector<json_plan::rule>& rules);
    result<void> add_items(place at, place value, std::vector<json_plan::rule>& rules);
    result<void> add_one(place value, json_keyword keyword, std::vector<json_plan::rule>& rules);
    result<void> add_members(place at, std::vector<json_plan::rule>& rules);
    result<void> add_dependencies(place value, std::vector<json_plan::rule>& rules);
    result<void> add_condition(place at, place value, std::vector<json_plan::rule>& rules);
    result<std::uint32_t> compiled_pattern(place at, std::string_view expression);
    result<std::vector<json_plan::text>> names_in(place value);

    [[nodiscard]] const json_document& document(place at) const {
        return plan_.documents[at.document]->document;
    }
    [[nodiscard]] const json_token& at(place p) const { return document(p).at(p.token); }
    [[nodiscard]] place member(place object, std::string_view key) const;
    json_plan::text keep(std::string_view text);
    tl::unexpected<error> wrong(place at, std::string_view why) const;
    result<void> expect(place at, json_kind kind) const;

    json_schema_limits limits_;
    json_plan plan_;
    std::vector<std::string> uris_;     ///< Of the documents.
    std::vector<bool> draft4_;          ///< Whose ids are called `id`.
    std::map<std::string, place> ids_;  ///< By their full URI.
    std::vector<scope> scopes_;
    std::map<place, std::unordered_map<std::string_view, index>> wide_;  ///< Members of large objects.
    std::map<place, std::uint32_t> made_;
    std::vector<waiting_node> waiting_;
};

}  // namespace millrace::schema
