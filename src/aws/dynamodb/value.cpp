#include "dynamodb/value.hpp"

#include "assert.hpp"
#include "overload.hpp"

#include <charconv>
#include <utility>

#include <boost/json.hpp>

namespace millrace::aws::dynamodb {

namespace json = boost::json;

namespace {

template <class T>
std::optional<T> integer(std::string_view text) {
    T value{};
    const auto* const end = text.data() + text.size();
    const auto [stopped, broken] = std::from_chars(text.data(), end, value);
    if (broken != std::errc{} || stopped != end) return std::nullopt;
    return value;
}

std::optional<value> value_from(const json::value& from);

std::optional<value> list_from(const json::array& from) {
    list values;
    values.reserve(from.size());
    for (const auto& one : from) {
        auto element = value_from(one);
        if (!element) return std::nullopt;
        values.push_back(std::move(*element));
    }
    return value{std::move(values)};
}

/// `{"S": "text"}`: one member, named for the type.
std::optional<value> value_from(const json::value& from) {
    if (!from.is_object() || from.get_object().size() != 1) return std::nullopt;
    const auto& [type, held] = *from.get_object().begin();
    if (type == "S" || type == "N") {
        if (!held.is_string()) return std::nullopt;
        std::string text(held.get_string());
        return type == "S" ? value{std::move(text)} : value{number{std::move(text)}};
    }
    if (type == "BOOL") return held.is_bool() ? std::optional(value{held.get_bool()}) : std::nullopt;
    if (type == "L") return held.is_array() ? list_from(held.get_array()) : std::nullopt;
    return value{foreign{}};
}

}  // namespace

std::optional<std::uint64_t> number::as_unsigned() const {
    return integer<std::uint64_t>(text);
}

std::optional<std::int64_t> number::as_signed() const {
    return integer<std::int64_t>(text);
}

json::object to_json(const value& from) {
    return std::visit(
        overload{
            [](const foreign&) -> json::object {
                MILLRACE_ASSERT(false);  // the caller's fault, see the header
                return {};
            },
            [](const std::string& text) {
                return json::object{{"S", text}};
            },
            [](const number& n) {
                return json::object{{"N", n.text}};
            },
            [](bool yes) {
                return json::object{{"BOOL", yes}};
            },
            [](const list& values) {
                json::array all;
                for (const auto& one : values)
                    all.emplace_back(to_json(one));
                return json::object{{"L", std::move(all)}};
            },
        },
        from.is
    );
}

json::object to_json(const item& from) {
    json::object all;
    for (const auto& [name, held] : from)
        all.emplace(name, to_json(held));
    return all;
}

std::optional<item> item_from(const json::value& from) {
    if (!from.is_object()) return std::nullopt;
    item all;
    for (const auto& [name, held] : from.get_object()) {
        auto one = value_from(held);
        if (!one) return std::nullopt;
        all.insert_or_assign(std::string(name), std::move(*one));
    }
    return all;
}

}  // namespace millrace::aws::dynamodb
