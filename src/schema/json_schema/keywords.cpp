#include "json/decimal.hpp"
#include "json/utf8.hpp"
#include "json_schema/compiler.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

using rules_of_node = std::vector<json_plan::rule>;

std::uint32_t narrow(std::size_t n) {
    return static_cast<std::uint32_t>(n);
}

std::uint32_t type_bit(std::string_view name) {
    struct entry {
        std::string_view name;
        std::uint32_t bit;
    };
    constexpr std::array entries{
        entry{"null", type_null},
        entry{"boolean", type_boolean},
        entry{"integer", type_integer},
        entry{"number", type_number},
        entry{"string", type_string},
        entry{"array", type_array},
        entry{"object", type_object}};
    for (const auto& e : entries) {
        if (name == e.name) return e.bit;
    }
    return 0;
}

}  // namespace

result<void> json_schema_compiler::add_type(place value, rules_of_node& rules) {
    std::uint32_t types = 0;
    const auto add = [&](place p) -> result<void> {
        if (auto text = expect(p, json_kind::string); !text) return text;
        const auto bit = type_bit(document(p).text(p.token));
        if (bit == 0) return wrong(p, fmt::format("\"{}\" is no type", shortened(document(p).text(p.token))));
        types |= bit;
        return {};
    };
    if (at(value).kind != json_kind::array) {
        if (auto added = add(value); !added) return added;
    } else {
        for (index item = value.token + 1; item < at(value).end; item = document(value).at(item).end) {
            if (auto added = add({value.document, item}); !added) return added;
        }
    }
    rules.push_back({json_keyword::type, types});
    return {};
}

result<void> json_schema_compiler::add_number(place value, json_keyword keyword, rules_of_node& rules) {
    if (auto number = expect(value, json_kind::number); !number) return number;
    const auto read = decimal::read(document(value).text(value.token));
    if (!read) return wrong(value, "the exponent is too large");
    if (keyword == json_keyword::multiple_of) {
        constexpr std::size_t digits_max = 18;
        if (read->zero() || read->negative()) return wrong(value, "multipleOf must be above 0");
        if (read->digits() > digits_max) return wrong(value, "multipleOf has more than 18 digits");
    }
    rules.push_back({keyword, value.token, value.document});
    return {};
}

/// In draft 4 it is a flag that changes the limit beside it.
result<void> json_schema_compiler::add_exclusive(place p, place value, bool minimum, rules_of_node& rules) {
    const auto keyword = minimum ? json_keyword::exclusive_minimum : json_keyword::exclusive_maximum;
    if (!draft4_[p.document] || at(value).kind != json_kind::boolean)
        return add_number(value, keyword, rules);
    const auto limit = member(p, minimum ? "minimum" : "maximum");
    if (!at(value).truth || limit.token == json_document::none) return {};
    return add_number(limit, keyword, rules);
}

result<void> json_schema_compiler::add_limit(place value, json_keyword keyword, rules_of_node& rules) {
    if (auto number = expect(value, json_kind::number); !number) return number;
    const auto read = decimal::read(document(value).text(value.token));
    if (!read || !read->integral() || read->negative()) return wrong(value, "expected a whole number from 0");
    const auto limit = read->to_int64().value_or(std::numeric_limits<std::int64_t>::max());
    // No value has as many characters or elements, so what is beyond 32 bits is the same.
    rules.push_back(
        {keyword, narrow(static_cast<std::size_t>(std::min<std::int64_t>(limit, json_plan::none)))}
    );
    return {};
}

result<std::uint32_t> json_schema_compiler::compiled_pattern(place p, std::string_view expression) {
    auto compiled = pattern::compile(expression);
    if (!compiled) return wrong(p, compiled.error().detail);
    plan_.patterns.push_back(std::move(*compiled));
    return narrow(plan_.patterns.size() - 1);
}

result<void> json_schema_compiler::add_pattern(place value, rules_of_node& rules) {
    if (auto text = expect(value, json_kind::string); !text) return text;
    const auto compiled = compiled_pattern(value, document(value).text(value.token));
    if (!compiled) return tl::unexpected(compiled.error());
    rules.push_back({json_keyword::pattern, *compiled});
    return {};
}

result<std::vector<json_plan::text>> json_schema_compiler::names_in(place value) {
    if (auto array = expect(value, json_kind::array); !array) return tl::unexpected(array.error());
    std::vector<json_plan::text> names;
    for (index item = value.token + 1; item < at(value).end; item = document(value).at(item).end) {
        if (auto text = expect({value.document, item}, json_kind::string); !text)
            return tl::unexpected(text.error());
        names.push_back(keep(document(value).text(item)));
    }
    return names;
}

result<void> json_schema_compiler::add_names(place value, rules_of_node& rules) {
    const auto names = names_in(value);
    if (!names) return tl::unexpected(names.error());
    rules.push_back({json_keyword::required, narrow(plan_.names.size()), narrow(names->size())});
    plan_.names.insert(plan_.names.end(), names->begin(), names->end());
    return {};
}

result<void> json_schema_compiler::add_list(place value, json_keyword keyword, rules_of_node& rules) {
    if (auto array = expect(value, json_kind::array); !array) return array;
    std::vector<std::uint32_t> nodes;
    for (index item = value.token + 1; item < at(value).end; item = document(value).at(item).end) {
        const auto made = node({value.document, item});
        if (!made) return tl::unexpected(made.error());
        nodes.push_back(*made);
    }
    rules.push_back({keyword, narrow(plan_.links.size()), narrow(nodes.size())});
    plan_.links.insert(plan_.links.end(), nodes.begin(), nodes.end());
    return {};
}

result<void> json_schema_compiler::add_one(place value, json_keyword keyword, rules_of_node& rules) {
    const auto made = node(value);
    if (!made) return tl::unexpected(made.error());
    rules.push_back({keyword, *made});
    return {};
}

result<void> json_schema_compiler::add_items(place p, place value, rules_of_node& rules) {
    if (at(value).kind != json_kind::array) return add_one(value, json_keyword::items, rules);
    if (auto added = add_list(value, json_keyword::item_list, rules); !added) return added;
    const auto count = rules.back().b;
    const auto additional = member(p, "additionalItems");
    if (additional.token == json_document::none) return {};
    if (auto added = add_one(additional, json_keyword::items, rules); !added) return added;
    rules.back().b = count;
    return {};
}

result<void> json_schema_compiler::add_members(place p, rules_of_node& rules) {
    json_member_rules made;
    const auto properties = member(p, "properties");
    const auto patterns = member(p, "patternProperties");
    const auto additional = member(p, "additionalProperties");
    std::vector<json_plan::property> named;
    std::vector<json_plan::pattern_property> matched;
    for (const auto& group : {properties, patterns}) {
        if (group.token == json_document::none) continue;
        if (auto object = expect(group, json_kind::object); !object) return object;
        const auto& texts = document(group);
        for (index key = group.token + 1; key < at(group).end; key = texts.at(key + 1).end) {
            const auto below = node({group.document, key + 1});
            if (!below) return tl::unexpected(below.error());
            if (group == properties) {
                named.push_back({keep(texts.text(key)), *below});
                continue;
            }
            const auto compiled = compiled_pattern({group.document, key}, texts.text(key));
            if (!compiled) return tl::unexpected(compiled.error());
            matched.push_back({*compiled, *below});
        }
    }
    if (additional.token != json_document::none) {
        const auto below = node(additional);
        if (!below) return tl::unexpected(below.error());
        made.additional = *below;
    }
    if (named.empty() && matched.empty() && made.additional == json_plan::none) return {};
    const auto by_name = [this](const auto& a, const auto& b) {
        return plan_.text_of(a.name) < plan_.text_of(b.name);
    };
    std::stable_sort(named.begin(), named.end(), by_name);
    made.properties = narrow(plan_.properties.size());
    made.property_count = narrow(named.size());
    made.patterns = narrow(plan_.pattern_properties.size());
    made.pattern_count = narrow(matched.size());
    plan_.properties.insert(plan_.properties.end(), named.begin(), named.end());
    plan_.pattern_properties.insert(plan_.pattern_properties.end(), matched.begin(), matched.end());
    rules.push_back({json_keyword::members, narrow(plan_.member_rules.size())});
    plan_.member_rules.push_back(made);
    return {};
}

result<void> json_schema_compiler::add_dependencies(place value, rules_of_node& rules) {
    if (auto object = expect(value, json_kind::object); !object) return object;
    for (index key = value.token + 1; key < at(value).end; key = document(value).at(key + 1).end) {
        const place needs{value.document, key + 1};
        const auto name = keep(document(value).text(key));
        if (at(needs).kind == json_kind::array) {
            const auto names = names_in(needs);
            if (!names) return tl::unexpected(names.error());
            rules.push_back({json_keyword::dependent_names, narrow(plan_.names.size()), narrow(names->size())}
            );
            plan_.names.push_back(name);
            plan_.names.insert(plan_.names.end(), names->begin(), names->end());
            continue;
        }
        const auto below = node(needs);
        if (!below) return tl::unexpected(below.error());
        rules.push_back({json_keyword::dependent_schema, narrow(plan_.names.size()), *below});
        plan_.names.push_back(name);
    }
    return {};
}

result<void> json_schema_compiler::add_condition(place p, place value, rules_of_node& rules) {
    std::array<std::uint32_t, 3> nodes{json_plan::none, json_plan::none, json_plan::none};
    const std::array<place, 3> places{value, member(p, "then"), member(p, "else")};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (places[i].token == json_document::none) continue;
        const auto made = node(places[i]);
        if (!made) return tl::unexpected(made.error());
        nodes[i] = *made;
    }
    rules.push_back({json_keyword::condition, narrow(plan_.links.size())});
    plan_.links.insert(plan_.links.end(), nodes.begin(), nodes.end());
    return {};
}

}  // namespace millrace::schema
