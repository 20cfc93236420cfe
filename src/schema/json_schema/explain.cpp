#include "json/utf8.hpp"
#include "json_schema/checker.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

std::string types_of(std::uint32_t types) {
    constexpr std::array<std::string_view, 7> names{
        "null", "boolean", "integer", "number", "string", "array", "object"};
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if ((types & (1U << i)) == 0) continue;
        list += fmt::format("{}{}", list.empty() ? "" : " or ", names[i]);
    }
    return list;
}

/// The values of an enumeration stand in the schema and may be shown; the first few.
std::string values_of(const json_document& document, json_document::index array) {
    constexpr std::size_t shown = 8;
    std::string list;
    std::size_t n = 0;
    for (auto value = array + 1; value < document.at(array).end; value = document.at(value).end) {
        const auto kind = document.at(value).kind;
        const bool text = kind == json_kind::string || kind == json_kind::number;
        if (++n > shown) return list + ", ...";
        list += fmt::format(
            "{}{}",
            list.empty() ? "" : ", ",
            text ? shortened(document.text(value)) : describe(document, value)
        );
    }
    return list;
}

}  // namespace

bool json_checker::is_name_of_schema(std::string_view key) const {
    const auto& known = plan_->properties;
    return std::any_of(known.begin(), known.end(), [&](const auto& p) {
        return plan_->text_of(p.name) == key;
    });
}

std::string json_checker::explain() const {
    const auto path =
        document_.path_of(fault_.token, [this](std::string_view key) { return is_name_of_schema(key); });
    return fmt::format("{}: {}", path, reason());
}

std::string json_checker::reason() const {
    if (stop_ == stop::too_costly) return "the schema tries too many alternatives for this value";
    if (stop_ == stop::pattern_too_costly)
        return "a pattern of the schema does not come to an end for this value";
    const auto& r = fault_.rule;
    const auto found = [&] { return describe(document_, fault_.token); };
    const auto number = [&] { return plan_->documents[r.b]->document.text(r.a); };
    const auto missing = [&] { return shortened(plan_->text_of(plan_->names[fault_.detail])); };
    switch (r.keyword) {
        case json_keyword::never:
            return fmt::format("no value is allowed here, found {}", found());
        case json_keyword::type:
            return fmt::format("expected {}, found {}", types_of(r.a), found());
        case json_keyword::enumeration:
            return fmt::format(
                "expected one of {}, found {}", values_of(plan_->documents[r.b]->document, r.a), found()
            );
        case json_keyword::constant:
            return fmt::format("expected the constant of the schema, found {}", found());
        case json_keyword::minimum:
            return fmt::format("expected a number from {}", number());
        case json_keyword::maximum:
            return fmt::format("expected a number up to {}", number());
        case json_keyword::exclusive_minimum:
            return fmt::format("expected a number above {}", number());
        case json_keyword::exclusive_maximum:
            return fmt::format("expected a number below {}", number());
        case json_keyword::multiple_of:
            return fmt::format("expected a multiple of {}", number());
        case json_keyword::min_length:
            return fmt::format("expected at least {} characters, found {}", r.a, found());
        case json_keyword::max_length:
            return fmt::format("expected at most {} characters, found {}", r.a, found());
        case json_keyword::min_items:
            return fmt::format("expected at least {} elements, found {}", r.a, found());
        case json_keyword::max_items:
            return fmt::format("expected at most {} elements, found {}", r.a, found());
        case json_keyword::min_properties:
            return fmt::format("expected at least {} members, found {}", r.a, found());
        case json_keyword::max_properties:
            return fmt::format("expected at most {} members, found {}", r.a, found());
        case json_keyword::pattern:
            return fmt::format("the pattern of the schema does not match, found {}", found());
        case json_keyword::unique_items:
            return "two elements are equal";
        case json_keyword::contains:
            return "no element is as `contains` asks";
        case json_keyword::required:
            return fmt::format("the member \"{}\" is missing", missing());
        case json_keyword::dependent_names:
            return fmt::format(
                "the member \"{}\" is missing, which \"{}\" needs",
                missing(),
                shortened(plan_->text_of(plan_->names[r.a]))
            );
        case json_keyword::members:
            return "a member that the schema does not allow";  // its name is the row's, so it may be data
        case json_keyword::negation:
            return fmt::format("`not` excludes this value, found {}", found());
        case json_keyword::any_of:
            return fmt::format("none of the {} alternatives of `anyOf` fits, found {}", r.b, found());
        case json_keyword::one_of:
            return fault_.detail > 1
                       ? fmt::format(
                             "{} of the {} alternatives of `oneOf` fit, found {}", fault_.detail, r.b, found()
                         )
                       : fmt::format("none of the {} alternatives of `oneOf` fits, found {}", r.b, found());
        default:
            return fmt::format("found {}", found());
    }
}

}  // namespace millrace::schema
