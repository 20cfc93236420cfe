/// A compiled JSON Schema: flat tables that refer to each other by index. Plain data; made by
/// `parse_json_schema`, walked by the checker.
#pragma once

#include "json/document.hpp"
#include "json_schema/pattern.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::schema {

enum class json_keyword : std::uint8_t {
    never,        ///< The schema `false`.
    type,         ///< a: a set of `json_type`
    enumeration,  ///< a: the array in `documents[b]`
    constant,     ///< a: the value in `documents[b]`
    minimum,      ///< a: the number in `documents[b]`, also of the next four
    maximum,
    exclusive_minimum,
    exclusive_maximum,
    multiple_of,
    min_length,  ///< a: the limit, also of the next five
    max_length,
    min_items,
    max_items,
    min_properties,
    max_properties,
    pattern,  ///< a: in `patterns`
    unique_items,
    items,             ///< a: the node of each element from b on
    item_list,         ///< a: first in `links`, b: how many
    contains,          ///< a: node
    required,          ///< a: first in `names`, b: how many
    members,           ///< a: in `member_rules`
    property_names,    ///< a: node
    dependent_names,   ///< a: the name in `names`, whose needs follow; b: how many needs
    dependent_schema,  ///< a: the name in `names`, b: node
    all_of,            ///< a: first in `links`, b: how many, also of the next two
    any_of,
    one_of,
    negation,  ///< a: node
    condition  ///< a: first in `links`: if, then, else, each of the last two perhaps `none`
};

/// Bits of `json_keyword::type`.
enum json_type : std::uint32_t {
    type_null = 1,
    type_boolean = 2,
    type_integer = 4,
    type_number = 8,
    type_string = 16,
    type_array = 32,
    type_object = 64
};

/// `properties`, `patternProperties` and `additionalProperties` of one schema.
struct json_member_rules {
    std::uint32_t properties{0};  ///< First in `properties`, in the order of their names.
    std::uint32_t property_count{0};
    std::uint32_t patterns{0};  ///< First in `pattern_properties`.
    std::uint32_t pattern_count{0};
    std::uint32_t additional{std::numeric_limits<std::uint32_t>::max()};  ///< Node of every other member.
};

struct json_plan {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    struct text {
        std::uint32_t at{0};
        std::uint32_t size{0};
    };
    struct rule {
        json_keyword keyword{json_keyword::never};
        std::uint32_t a{0};
        std::uint32_t b{0};
    };
    struct node {
        std::uint32_t first{0};  ///< In `rules`.
        std::uint32_t count{0};
    };
    struct property {
        text name;
        std::uint32_t node{0};
    };
    struct pattern_property {
        std::uint32_t pattern{0};
        std::uint32_t node{0};
    };

    /// A schema's text and its tokens, which refer to it.
    struct source {
        explicit source(std::string_view schema, json_limits limits) : content(schema), document(limits) {}
        std::string content;
        json_document document;
    };

    std::vector<node> nodes;
    std::vector<rule> rules;
    std::vector<std::uint32_t> links;  ///< Nodes.
    std::vector<text> names;
    std::vector<property> properties;
    std::vector<pattern_property> pattern_properties;
    std::vector<json_member_rules> member_rules;
    std::vector<pattern> patterns;
    std::vector<std::unique_ptr<source>> documents;
    std::string texts;
    std::uint32_t root{0};

    [[nodiscard]] std::string_view text_of(text t) const noexcept {
        return std::string_view(texts).substr(t.at, t.size);
    }
};

}  // namespace millrace::schema
