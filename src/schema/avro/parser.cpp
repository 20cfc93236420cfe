#include "avro/parser.hpp"

#include "avro/names.hpp"
#include "json/utf8.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

std::uint32_t narrow(std::size_t n) {
    return static_cast<std::uint32_t>(n);
}

}  // namespace

avro_parser::avro_parser(const avro_limits& limits)
    : limits_(limits), document_(json_limits{.bytes_max = limits.bytes_max, .depth_max = limits.depth_max}) {
    for (std::uint8_t kind = 0; kind <= static_cast<std::uint8_t>(avro_kind::string); ++kind)
        plan_.nodes.emplace_back().kind = static_cast<avro_kind>(kind);
}

tl::unexpected<error> avro_parser::wrong(index token, std::string_view why) const {
    return fail(errc::invalid_argument, fmt::format("{}: {}", document_.path_of(token), why));
}

result<std::string_view> avro_parser::required_text(index object, std::string_view key) const {
    return required(object, key, json_kind::string).map([this](index value) {
        return document_.text(value);
    });
}

result<avro_parser::index> avro_parser::required(index object, std::string_view key, json_kind kind) const {
    const auto value = document_.member(object, key);
    if (value == json_document::none) return wrong(object, fmt::format("\"{}\" is missing", key));
    if (document_.at(value).kind != kind) {
        const auto wanted = kind == json_kind::string  ? "a string"
                            : kind == json_kind::array ? "an array"
                                                       : "a number";
        return wrong(value, fmt::format("expected {}, found {}", wanted, describe(document_, value)));
    }
    return value;
}

avro_text avro_parser::keep(std::string_view text) {
    const avro_text kept{narrow(plan_.texts.size()), narrow(text.size())};
    plan_.texts.append(text);
    return kept;
}

result<std::uint32_t> avro_parser::new_node(index token, avro_kind kind) {
    if (plan_.nodes.size() >= limits_.types_max) {
        return wrong(token, fmt::format("the schema has more than {} types", limits_.types_max));
    }
    plan_.nodes.emplace_back().kind = kind;
    return narrow(plan_.nodes.size() - 1);
}

result<std::uint32_t> avro_parser::new_named_node(index token, avro_kind kind, std::string_view space) {
    const auto name = required_text(token, "name");
    if (!name) return tl::unexpected(name.error());
    const auto own_space = document_.member(token, "namespace");
    if (own_space != json_document::none) {
        if (document_.at(own_space).kind != json_kind::string)
            return wrong(own_space, "a namespace is a string");
        space = document_.text(own_space);
    }
    const auto full = full_name(*name, space);
    if (!is_avro_full_name(full)) {
        return wrong(
            token, fmt::format("\"{}\" is no name: letters, digits and _, joined by dots", shortened(full))
        );
    }
    const auto dot = full.rfind('.');
    if (primitive_of(std::string_view(full).substr(dot == std::string::npos ? 0 : dot + 1))) {
        return wrong(token, fmt::format("\"{}\" is the name of a primitive type", full));
    }
    auto node = new_node(token, kind);
    if (!node) return node;
    if (!named_.emplace(full, *node).second)
        return wrong(token, fmt::format("\"{}\" is defined twice", full));
    plan_.nodes[*node].name = keep(full);
    return node;
}

result<std::uint32_t> avro_parser::type(index token, std::string_view space) {
    switch (document_.at(token).kind) {
        case json_kind::string:
            return named_type(token, document_.text(token), space);
        case json_kind::object:
            return object_type(token, space);
        case json_kind::array:
            return union_type(token, space);
        default:
            return wrong(
                token,
                fmt::format(
                    "expected a type (a string, an object or an array), found {}", describe(document_, token)
                )
            );
    }
}

result<std::uint32_t> avro_parser::named_type(index token, std::string_view name, std::string_view space) {
    if (const auto primitive = primitive_of(name)) return static_cast<std::uint32_t>(*primitive);
    auto found = named_.find(full_name(name, space));
    if (found == named_.end()) found = named_.find(std::string(name));
    if (found != named_.end()) return found->second;
    return wrong(
        token,
        fmt::format(
            "\"{}\" is no primitive type and no type that was defined before or in a reference",
            shortened(name)
        )
    );
}

result<std::uint32_t> avro_parser::object_type(index token, std::string_view space) {
    const auto described = document_.member(token, "type");
    if (described == json_document::none) return wrong(token, "\"type\" is missing");
    if (document_.at(described).kind != json_kind::string) return type(described, space);
    const auto name = document_.text(described);
    if (name == "record" || name == "error") return record_type(token, space);
    if (name == "enum") return enum_type(token, space);
    if (name == "array") return items_type(token, avro_kind::array, space);
    if (name == "map") return items_type(token, avro_kind::map, space);
    if (name == "fixed") return fixed_type(token, space);
    auto node = named_type(described, name, space);
    const bool plain = document_.member(token, "logicalType") == json_document::none;
    if (!node || plain || !primitive_of(name)) return node;
    node = new_node(token, plan_.nodes[*node].kind);
    if (!node) return node;
    return add_logical(token, *node).map([&] { return *node; });
}

result<std::uint32_t> avro_parser::items_type(index token, avro_kind kind, std::string_view space) {
    const std::string_view key = kind == avro_kind::array ? "items" : "values";
    const auto items = document_.member(token, key);
    if (items == json_document::none) return wrong(token, fmt::format("\"{}\" is missing", key));
    auto item = type(items, space);
    if (!item) return item;
    auto node = new_node(token, kind);
    if (node) plan_.nodes[*node].first = *item;
    return node;
}

result<std::uint32_t> avro_parser::union_type(index token, std::string_view space) {
    std::vector<std::uint32_t> branches;
    for (index item = token + 1; item < document_.at(token).end; item = document_.at(item).end) {
        auto branch = type(item, space);
        if (!branch) return branch;
        branches.push_back(*branch);
    }
    if (auto checked = check_union(token, branches); !checked) return tl::unexpected(checked.error());
    auto node = new_node(token, avro_kind::union_);
    if (!node) return node;
    plan_.nodes[*node].first = narrow(plan_.branches.size());
    plan_.nodes[*node].count = narrow(branches.size());
    plan_.branches.insert(plan_.branches.end(), branches.begin(), branches.end());
    return node;
}

result<void> avro_parser::check_union(index token, const std::vector<std::uint32_t>& branches) {
    std::vector<std::string_view> names;
    for (const auto branch : branches) {
        if (plan_.nodes[branch].kind == avro_kind::union_) return wrong(token, "a union holds another union");
        names.push_back(plan_.branch_name(plan_.nodes[branch]));
    }
    std::sort(names.begin(), names.end());
    const auto doubled = std::adjacent_find(names.begin(), names.end());
    if (doubled == names.end()) return {};
    return wrong(token, fmt::format("a union holds \"{}\" twice", *doubled));
}

result<std::uint32_t> avro_parser::record_type(index token, std::string_view space) {
    auto node = new_named_node(token, avro_kind::record, space);
    if (!node) return node;
    const auto fields = required(token, "fields", json_kind::array);
    if (!fields) return tl::unexpected(fields.error());
    // A copy: the texts of the plan move as they grow.
    const std::string own_space(namespace_of(plan_.text(plan_.nodes[*node].name)));
    return record_fields(*fields, *node, own_space).map([&] { return *node; });
}

result<void> avro_parser::record_fields(index token, std::uint32_t record, std::string_view space) {
    // Collected first, so that the fields of one record stand together though the types of some are records.
    std::vector<avro_field> fields;
    std::vector<std::string_view> names;
    std::vector<waiting_default> waiting;
    for (index item = token + 1; item < document_.at(token).end; item = document_.at(item).end) {
        const auto field = record_field(item, space);
        if (!field) return tl::unexpected(field.error());
        if (field->has_default) {
            waiting.push_back({narrow(fields.size()), document_.member(item, "default")});
        }
        names.push_back(document_.text(document_.member(item, "name")));
        fields.push_back(*field);
    }
    auto& node = plan_.nodes[record];
    node.first = narrow(plan_.fields.size());
    node.count = narrow(fields.size());
    sort_names(node, names);
    for (auto& w : waiting)
        defaults_.push_back({node.first + w.field, w.token});
    plan_.fields.insert(plan_.fields.end(), fields.begin(), fields.end());
    for (std::uint32_t i = 1; i < node.count; ++i) {
        const auto here = plan_.by_name[node.sorted + i];
        if (names[here] == names[plan_.by_name[node.sorted + i - 1]]) {
            return wrong(token, fmt::format("the field \"{}\" is defined twice", names[here]));
        }
    }
    return {};
}

result<avro_field> avro_parser::record_field(index token, std::string_view space) {
    if (document_.at(token).kind != json_kind::object) {
        return wrong(
            token, fmt::format("expected a field (an object), found {}", describe(document_, token))
        );
    }
    const auto name = required_text(token, "name");
    if (!name) return tl::unexpected(name.error());
    if (!is_avro_name(*name)) {
        return wrong(token, fmt::format("\"{}\" is no name: letters, digits and _", shortened(*name)));
    }
    const auto described = document_.member(token, "type");
    if (described == json_document::none) return wrong(token, "\"type\" is missing");
    const auto node = type(described, space);
    if (!node) return tl::unexpected(node.error());
    avro_field field;
    field.name = keep(*name);
    field.node = *node;
    field.has_default = document_.member(token, "default") != json_document::none;
    field.default_size = avro_plan::none;
    return field;
}

void avro_parser::sort_names(avro_node& node, const std::vector<std::string_view>& names) {
    std::vector<std::uint32_t> places(names.size());
    std::iota(places.begin(), places.end(), 0U);
    std::sort(places.begin(), places.end(), [&](auto a, auto b) { return names[a] < names[b]; });
    node.sorted = narrow(plan_.by_name.size());
    plan_.by_name.insert(plan_.by_name.end(), places.begin(), places.end());
}

result<std::uint32_t> avro_parser::enum_type(index token, std::string_view space) {
    auto made = new_named_node(token, avro_kind::enumeration, space);
    if (!made) return made;
    const auto symbols = required(token, "symbols", json_kind::array);
    if (!symbols) return tl::unexpected(symbols.error());
    auto& node = plan_.nodes[*made];
    node.first = narrow(plan_.symbols.size());
    node.count = document_.at(*symbols).size;
    std::vector<std::string_view> names;
    for (index item = *symbols + 1; item < document_.at(*symbols).end; item = document_.at(item).end) {
        const bool name = document_.at(item).kind == json_kind::string && is_avro_name(document_.text(item));
        if (!name) return wrong(item, "a symbol is a string of letters, digits and _");
        names.push_back(document_.text(item));
        plan_.symbols.push_back(keep(names.back()));
    }
    sort_names(node, names);
    for (std::uint32_t i = 1; i < node.count; ++i) {
        const auto here = names[plan_.by_name[node.sorted + i]];
        if (here == names[plan_.by_name[node.sorted + i - 1]]) {
            return wrong(*symbols, fmt::format("the symbol \"{}\" stands twice", here));
        }
    }
    const auto preset = document_.member(token, "default");
    const bool none = preset == json_document::none;
    const bool known = !none && document_.at(preset).kind == json_kind::string &&
                       plan_.find_symbol(node, document_.text(preset)) != avro_plan::none;
    if (!none && !known) return wrong(preset, "the default of an enum is one of its symbols");
    return made;
}

result<std::uint32_t> avro_parser::fixed_type(index token, std::string_view space) {
    auto node = new_named_node(token, avro_kind::fixed, space);
    if (!node) return node;
    const auto size = required(token, "size", json_kind::number);
    if (!size) return tl::unexpected(size.error());
    const auto text = document_.text(*size);
    std::uint32_t bytes = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) {
        return wrong(*size, "the size of a fixed is a whole number below 2^32");
    }
    plan_.nodes[*node].count = bytes;
    return add_logical(token, *node).map([&] { return *node; });
}

avro_schema avro_parser::finish(std::uint32_t root) && {
    plan_.root = root;
    plan_.nodes.shrink_to_fit();
    plan_.fields.shrink_to_fit();
    plan_.symbols.shrink_to_fit();
    plan_.branches.shrink_to_fit();
    plan_.by_name.shrink_to_fit();
    plan_.texts.shrink_to_fit();
    plan_.defaults.shrink_to_fit();
    return avro_schema(std::move(plan_));
}

}  // namespace millrace::schema
