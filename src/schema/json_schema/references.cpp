#include "json/utf8.hpp"
#include "json_schema/compiler.hpp"
#include "json_schema/uri.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace millrace::schema {

result<void> json_schema_compiler::add_document(std::string_view json, std::string_view uri) {
    auto source = std::make_unique<json_plan::source>(
        json, json_limits{.bytes_max = limits_.bytes_max, .depth_max = limits_.depth_max}
    );
    if (auto read = source->document.read(source->content); !read) return read;
    const place root{static_cast<std::uint32_t>(plan_.documents.size()), json_document::root};
    plan_.documents.push_back(std::move(source));
    uris_.emplace_back(uri);
    draft4_.push_back(false);
    if (auto draft = check_draft(root.document); !draft) return draft;
    ids_.emplace(uri, root);
    add_ids(root, std::string(uri));
    return {};
}

result<void> json_schema_compiler::check_draft(std::uint32_t number) {
    const place root{number, json_document::root};
    if (at(root).kind != json_kind::object) return {};
    const auto named = member(root, "$schema");
    if (named.token == json_document::none || at(named).kind != json_kind::string) return {};
    const auto draft = document(named).text(named.token);
    if (draft.find("draft-04") != std::string_view::npos) draft4_[number] = true;
    for (const auto* known : {"draft-04", "draft-06", "draft-07", "json-schema.org/schema"}) {
        if (draft.find(known) != std::string_view::npos) return {};
    }
    return wrong(
        named,
        fmt::format("\"{}\" is not supported; the drafts 4, 6 and 7 of JSON Schema are", shortened(draft))
    );
}

json_schema_compiler::index json_schema_compiler::id_of(place p) const {
    // Beside a $ref nothing counts, the id neither.
    if (at(p).kind != json_kind::object || member(p, "$ref").token != json_document::none)
        return json_document::none;
    const auto id = member(p, draft4_[p.document] ? "id" : "$id");
    return id.token != json_document::none && at(id).kind == json_kind::string ? id.token
                                                                               : json_document::none;
}

std::string json_schema_compiler::own_base(place p, const std::string& base) const {
    const auto id = id_of(p);
    return id == json_document::none ? base : resolve_uri(base, document(p).text(id));
}

void json_schema_compiler::add_ids(place p, const std::string& base) {
    const auto own = own_base(p, base);
    if (id_of(p) != json_document::none) {
        ids_.emplace(own, p);
        scopes_.push_back({p, at(p).end, own});
        if (fragment_of(own).empty()) ids_.emplace(without_fragment(own), p);
    }
    const bool object = at(p).kind == json_kind::object;
    if (!object && at(p).kind != json_kind::array) return;
    index child = p.token + 1;
    while (child < at(p).end) {
        const index value = object ? child + 1 : child;
        const auto key = object ? document(p).text(child) : std::string_view{};
        if (key != "enum" && key != "const") add_ids({p.document, value}, own);
        child = document(p).at(value).end;
    }
}

std::string_view json_schema_compiler::base_of(place wanted) const {
    // The scopes stand in the order of their beginnings, so the last that holds it is the innermost.
    const auto holds = [wanted](const scope& s) {
        return s.at.document == wanted.document && s.at.token <= wanted.token && wanted.token < s.end;
    };
    const auto found = std::find_if(scopes_.rbegin(), scopes_.rend(), holds);
    return found == scopes_.rend() ? std::string_view(uris_[wanted.document]) : std::string_view(found->base);
}

json_schema_compiler::index json_schema_compiler::quick_member(place object, std::string_view key) {
    constexpr std::uint32_t looked_through = 32;
    if (at(object).size <= looked_through) return member(object, key).token;
    auto [found, fresh] = wide_.try_emplace(object);
    const auto& texts = document(object);
    for (index i = object.token + 1; fresh && i < at(object).end; i = texts.at(i + 1).end)
        found->second[texts.text(i)] = i + 1;
    const auto value = found->second.find(key);
    return value == found->second.end() ? json_document::none : value->second;
}

result<json_schema_compiler::place> json_schema_compiler::target_of(place p) {
    const auto reference = document(p).text(p.token);
    // The $ref stands in an object, whose base is that of the schemas around it.
    const auto full = resolve_uri(base_of(p), reference);
    const auto fragment = fragment_of(full);
    const bool pointer = fragment.empty() || fragment.starts_with('/');
    const std::string wanted(pointer ? without_fragment(full) : std::string_view(full));
    auto found = ids_.find(wanted);
    if (found == ids_.end()) found = ids_.find(std::string(without_fragment(reference)));
    if (found == ids_.end()) {
        return wrong(
            p,
            fmt::format(
                "\"{}\" is neither in the schema nor in a reference that was given", shortened(reference)
            )
        );
    }
    return fragment.empty() || !pointer ? result<place>(found->second)
                                        : step_down(found->second, fragment, p);
}

result<json_schema_compiler::place> json_schema_compiler::step_down(
    place p, std::string_view pointer, place reference
) {
    while (!pointer.empty()) {
        pointer.remove_prefix(1);
        const auto slash = pointer.find('/');
        const auto step = pointer_step(percent_decoded(pointer.substr(0, slash)));
        pointer.remove_prefix(slash == std::string_view::npos ? pointer.size() : slash);
        place below{p.document, json_document::none};
        if (at(p).kind == json_kind::object) {
            below.token = quick_member(p, step);
        } else if (at(p).kind == json_kind::array) {
            std::uint32_t number = json_document::none;
            std::from_chars(step.data(), step.data() + step.size(), number);
            if (number < at(p).size) {
                below.token = p.token + 1;
                for (; number > 0; --number)
                    below.token = at(below).end;
            }
        }
        if (below.token == json_document::none) {
            const auto text = document(reference).text(reference.token);
            return wrong(reference, fmt::format("\"{}\" names nothing in its document", shortened(text)));
        }
        p = below;
    }
    return p;
}

}  // namespace millrace::schema
