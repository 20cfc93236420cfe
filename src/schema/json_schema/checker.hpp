/// Checks JSON text against a JSON Schema.
///
/// Numbers are compared with all their digits. A name that stands twice in an object is refused, because
/// readers differ in which of the two they take. Bounded: a check that needs more steps than
/// `steps_per_value` for each value in the text is given up, and so is a pattern that does not come to an
/// end. Keeps its memory between values; not thread-safe.
#pragma once

#include "json/document.hpp"
#include "json_schema/pattern.hpp"
#include "json_schema/schema.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::schema {

struct json_check_options {
    json_limits limits;

    /// Schemas that are tried for one value of the text, on the average; alternatives within alternatives
    /// multiply.
    std::size_t steps_per_value{1000};
};

class json_checker {
public:
    explicit json_checker(const json_check_options& options = {})
        : options_(options), document_(options.limits) {}

    /// The error (`refused_record`) says where the value does not fit, what was expected and what kind of
    /// value was found, never the value.
    [[nodiscard]] result<void> check(const json_schema& schema, std::string_view json);

private:
    using index = json_document::index;

    enum class stop : std::uint8_t { no, too_costly, pattern_too_costly };

    struct fault {
        json_plan::rule rule;
        index token{0};
        std::uint32_t detail{0};  ///< A name in `names` that is missing, or how many of `one_of` fit.
    };

    bool node(std::uint32_t number, index token);
    bool rule(const json_plan::rule& rule, index token);
    bool number_rule(const json_plan::rule& rule, index token);
    bool size_rule(const json_plan::rule& rule, index token);
    bool string_rule(const json_plan::rule& rule, index token);
    bool array_rule(const json_plan::rule& rule, index token);
    bool object_rule(const json_plan::rule& rule, index token);
    bool combined_rule(const json_plan::rule& rule, index token);
    bool members(const json_plan::rule& rule, index token);
    bool member(const json_member_rules& rules, index key);
    bool alternatives(const json_plan::rule& rule, index token);
    bool enumerated(const json_plan::rule& rule, index token);
    bool distinct(index array);
    bool matches(std::uint32_t pattern, std::string_view text);
    bool needs(const json_plan::rule& rule, std::uint32_t first, std::uint32_t count, index token);
    bool refuse(const json_plan::rule& rule, index token, std::uint32_t detail = 0);
    [[nodiscard]] index doubled_key() const;
    [[nodiscard]] std::string explain() const;
    [[nodiscard]] std::string reason() const;
    [[nodiscard]] bool is_name_of_schema(std::string_view key) const;

    json_check_options options_;
    json_document document_;
    pattern_matcher matcher_;
    std::vector<std::pair<std::uint64_t, index>> hashes_;

    const json_plan* plan_{nullptr};
    fault fault_;
    stop stop_{stop::no};
    std::size_t steps_left_{0};
    std::size_t depth_{0};
};

}  // namespace millrace::schema
