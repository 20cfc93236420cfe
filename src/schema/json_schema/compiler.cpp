#include "json_schema/compiler.hpp"

#include "json_schema/uri.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

std::uint32_t narrow(std::size_t n) {
    return static_cast<std::uint32_t>(n);
}

std::string_view name_of(json_kind kind) {
    constexpr std::array<std::string_view, 6> names{
        "null", "a boolean", "a number", "a string", "an array", "an object"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace

tl::unexpected<error> json_schema_compiler::wrong(place p, std::string_view why) const {
    const auto where = document(p).path_of(p.token);
    const auto whose =
        p.document == 0 ? std::string{} : fmt::format(" of the reference \"{}\"", uris_[p.document]);
    return fail(
        errc::invalid_argument, fmt::format("the JSON Schema is wrong at {}{}: {}", where, whose, why)
    );
}

result<void> json_schema_compiler::expect(place p, json_kind kind) const {
    if (at(p).kind == kind) return {};
    return wrong(p, fmt::format("expected {}, found {}", name_of(kind), describe(document(p), p.token)));
}

json_schema_compiler::place json_schema_compiler::member(place object, std::string_view key) const {
    return {object.document, document(object).member(object.token, key)};
}

json_plan::text json_schema_compiler::keep(std::string_view text) {
    const json_plan::text kept{narrow(plan_.texts.size()), narrow(text.size())};
    plan_.texts.append(text);
    return kept;
}

result<json_schema> json_schema_compiler::compile(
    std::string_view json, std::span<const json_reference> references
) {
    if (auto added = add_document(json, ""); !added) return tl::unexpected(added.error());
    const std::string base(base_of({0, json_document::root}));
    for (const auto& reference : references) {
        if (auto added = add_document(reference.schema, resolve_uri(base, reference.name)); !added) {
            return tl::unexpected(added.error());
        }
    }
    const auto root = node({0, json_document::root});
    if (!root) return tl::unexpected(root.error());
    plan_.root = *root;
    // One after the other: schemas that refer to each other may be nested far deeper than their text.
    while (!waiting_.empty()) {
        const auto next = waiting_.back();
        waiting_.pop_back();
        if (auto filled = fill(next.node, next.at); !filled) return tl::unexpected(filled.error());
    }
    return json_schema(std::move(plan_));
}

/// A schema that is nothing but a `$ref` is the schema that it names.
result<std::uint32_t> json_schema_compiler::follow(place p) {
    std::set<place> passed;
    for (;;) {
        if (at(p).kind != json_kind::object) return node(p);
        const auto reference = member(p, "$ref");
        const bool refers = reference.token != json_document::none && at(reference).kind == json_kind::string;
        if (!refers) return node(p);
        if (!passed.insert(p).second) return wrong(reference, "the $ref leads back to itself");
        const auto target = target_of(reference);
        if (!target) return tl::unexpected(target.error());
        p = *target;
    }
}

result<std::uint32_t> json_schema_compiler::node(place p) {
    const auto kind = at(p).kind;
    if (kind == json_kind::object) {
        const auto reference = member(p, "$ref");
        if (reference.token != json_document::none && at(reference).kind == json_kind::string)
            return follow(p);
    } else if (kind != json_kind::boolean) {
        return wrong(
            p,
            fmt::format(
                "expected a schema (an object or a boolean), found {}", describe(document(p), p.token)
            )
        );
    }
    const auto made = narrow(plan_.nodes.size());
    const auto [known, fresh] = made_.emplace(p, made);
    if (!fresh) return known->second;
    if (plan_.nodes.size() >= limits_.schemas_max) {
        return wrong(p, fmt::format("there are more than {} schemas in it", limits_.schemas_max));
    }
    plan_.nodes.emplace_back();
    waiting_.push_back({made, p});
    return made;
}

result<void> json_schema_compiler::fill(std::uint32_t made, place p) {
    // Collected first, so that the rules of one schema stand together though they hold schemas.
    std::vector<json_plan::rule> rules;
    if (at(p).kind == json_kind::boolean) {
        if (!at(p).truth) rules.push_back({json_keyword::never});
    } else {
        for (index key = p.token + 1; key < at(p).end; key = document(p).at(key + 1).end) {
            if (auto added = add_keyword(p, document(p).text(key), key + 1, rules); !added) return added;
        }
        if (auto added = add_members(p, rules); !added) return added;
    }
    // The cheap ones first: a wrong type is found before the patterns are tried.
    std::stable_sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) {
        return a.keyword < b.keyword;
    });
    plan_.nodes[made] = {narrow(plan_.rules.size()), narrow(rules.size())};
    plan_.rules.insert(plan_.rules.end(), rules.begin(), rules.end());
    return {};
}

result<void> json_schema_compiler::add_keyword(
    place p, std::string_view key, index token, std::vector<json_plan::rule>& rules
) {
    const place value{p.document, token};
    if (key == "type") return add_type(value, rules);
    if (key == "const") {
        rules.push_back({json_keyword::constant, token, p.document});
        return {};
    }
    if (key == "enum") {
        rules.push_back({json_keyword::enumeration, token, p.document});
        return expect(value, json_kind::array);
    }
    if (key == "exclusiveMinimum") return add_exclusive(p, value, true, rules);
    if (key == "exclusiveMaximum") return add_exclusive(p, value, false, rules);
    if (key == "pattern") return add_pattern(value, rules);
    if (key == "required") return add_names(value, rules);
    if (key == "items") return add_items(p, value, rules);
    if (key == "dependencies") return add_dependencies(value, rules);
    if (key == "if") return add_condition(p, value, rules);
    if (key == "uniqueItems") {
        if (at(value).truth) rules.push_back({json_keyword::unique_items});
        return expect(value, json_kind::boolean);
    }
    using adder = result<void> (json_schema_compiler::*)(place, json_keyword, std::vector<json_plan::rule>&);
    struct entry {
        std::string_view key;
        json_keyword keyword;
        adder add;
    };
    constexpr auto number = &json_schema_compiler::add_number;
    constexpr auto limit = &json_schema_compiler::add_limit;
    constexpr auto list = &json_schema_compiler::add_list;
    constexpr auto one = &json_schema_compiler::add_one;
    static constexpr std::array entries{
        entry{"minimum", json_keyword::minimum, number},
        entry{"maximum", json_keyword::maximum, number},
        entry{"multipleOf", json_keyword::multiple_of, number},
        entry{"minLength", json_keyword::min_length, limit},
        entry{"maxLength", json_keyword::max_length, limit},
        entry{"minItems", json_keyword::min_items, limit},
        entry{"maxItems", json_keyword::max_items, limit},
        entry{"minProperties", json_keyword::min_properties, limit},
        entry{"maxProperties", json_keyword::max_properties, limit},
        entry{"allOf", json_keyword::all_of, list},
        entry{"anyOf", json_keyword::any_of, list},
        entry{"oneOf", json_keyword::one_of, list},
        entry{"contains", json_keyword::contains, one},
        entry{"propertyNames", json_keyword::property_names, one},
        entry{"not", json_keyword::negation, one}};
    for (const auto& e : entries) {
        if (key == e.key) return (this->*e.add)(value, e.keyword, rules);
    }
    return {};
}

result<json_schema> parse_json_schema(
    std::string_view json, std::span<const json_reference> references, const json_schema_limits& limits
) {
    return json_schema_compiler(limits).compile(json, references);
}

std::string_view json_schema::title() const noexcept {
    const auto& document = plan_.documents.front()->document;
    if (document.at(json_document::root).kind != json_kind::object) return {};
    const auto token = document.member(json_document::root, "title");
    const bool text = token != json_document::none && document.at(token).kind == json_kind::string;
    return text ? document.text(token) : std::string_view{};
}

std::size_t json_schema::bytes() const noexcept {
    const auto of = [](const auto& table) {
        return table.capacity() * sizeof(typename std::remove_cvref_t<decltype(table)>::value_type);
    };
    std::size_t sum = sizeof(*this) + of(plan_.nodes) + of(plan_.rules) + of(plan_.links) + of(plan_.names) +
                      of(plan_.properties) + of(plan_.pattern_properties) + of(plan_.member_rules) +
                      of(plan_.texts);
    for (const auto& p : plan_.patterns)
        sum += p.bytes() + sizeof(p);
    for (const auto& d : plan_.documents)
        sum += sizeof(*d) + d->content.capacity() + d->document.size() * sizeof(json_token);
    return sum;
}

}  // namespace millrace::schema
