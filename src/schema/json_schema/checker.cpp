#include "json_schema/checker.hpp"

#include "json/compare.hpp"
#include "json/decimal.hpp"
#include "json/utf8.hpp"

#include <algorithm>

namespace millrace::schema {

namespace {

// Schemas within one another for one place of the value; bounds the stack.
constexpr std::size_t depth_max = 1000;

bool is_of_type(std::uint32_t types, const json_document& document, json_document::index token) {
    const auto has = [types](json_type type) { return (types & type) != 0; };
    switch (document.at(token).kind) {
        case json_kind::null:
            return has(type_null);
        case json_kind::boolean:
            return has(type_boolean);
        case json_kind::string:
            return has(type_string);
        case json_kind::array:
            return has(type_array);
        case json_kind::object:
            return has(type_object);
        case json_kind::number:
            break;
    }
    if (has(type_number) || !has(type_integer)) return has(type_number);
    if (document.at(token).integral) return true;
    const auto number = decimal::read(document.text(token));
    return number && number->integral();
}

}  // namespace

result<void> json_checker::check(const json_schema& schema, std::string_view json) {
    if (auto read = document_.read(json); !read)
        return fail(errc::refused_record, std::move(read.error().detail));
    plan_ = &schema.plan();
    stop_ = stop::no;
    steps_left_ = 1000 + options_.steps_per_value * document_.size();
    depth_ = 0;
    if (const auto doubled = doubled_key(); doubled != json_document::none) {
        const auto path =
            document_.path_of(doubled, [this](std::string_view key) { return is_name_of_schema(key); });
        return fail(
            errc::refused_record,
            "the value does not fit its JSON Schema at " + path + ": a name stands twice in one object"
        );
    }
    if (node(plan_->root, json_document::root)) return {};
    return fail(errc::refused_record, "the value does not fit its JSON Schema at " + explain());
}

json_checker::index json_checker::doubled_key() const {
    for (index token = 0; token < document_.size(); ++token) {
        if (document_.at(token).kind != json_kind::object) continue;
        const auto doubled = document_.doubled_key(token);
        if (doubled != json_document::none) return doubled;
    }
    return json_document::none;
}

bool json_checker::refuse(const json_plan::rule& rule, index token, std::uint32_t detail) {
    if (stop_ == stop::no) fault_ = {rule, token, detail};
    return false;
}

bool json_checker::node(std::uint32_t number, index token) {
    if (stop_ != stop::no) return false;
    if (steps_left_ == 0 || depth_ == depth_max) {
        refuse({}, token);
        stop_ = stop::too_costly;
        return false;
    }
    --steps_left_;
    ++depth_;
    const auto& node = plan_->nodes[number];
    bool fits = true;
    for (std::uint32_t i = 0; fits && i < node.count; ++i)
        fits = rule(plan_->rules[node.first + i], token);
    --depth_;
    return fits;
}

bool json_checker::rule(const json_plan::rule& r, index token) {
    switch (r.keyword) {
        case json_keyword::never:
            return refuse(r, token);
        case json_keyword::type:
            return is_of_type(r.a, document_, token) || refuse(r, token);
        case json_keyword::enumeration:
            return enumerated(r, token);
        case json_keyword::constant:
            return same_value(document_, token, plan_->documents[r.b]->document, r.a) || refuse(r, token);
        case json_keyword::minimum:
        case json_keyword::maximum:
        case json_keyword::exclusive_minimum:
        case json_keyword::exclusive_maximum:
        case json_keyword::multiple_of:
            return number_rule(r, token);
        case json_keyword::min_length:
        case json_keyword::max_length:
        case json_keyword::pattern:
            return string_rule(r, token);
        case json_keyword::min_items:
        case json_keyword::max_items:
        case json_keyword::min_properties:
        case json_keyword::max_properties:
            return size_rule(r, token);
        case json_keyword::unique_items:
        case json_keyword::items:
        case json_keyword::item_list:
        case json_keyword::contains:
            return array_rule(r, token);
        case json_keyword::required:
        case json_keyword::members:
        case json_keyword::property_names:
        case json_keyword::dependent_names:
        case json_keyword::dependent_schema:
            return object_rule(r, token);
        default:
            return combined_rule(r, token);
    }
}

bool json_checker::number_rule(const json_plan::rule& r, index token) {
    if (document_.at(token).kind != json_kind::number) return true;
    const auto value = decimal::read(document_.text(token));
    const auto limit = decimal::read(plan_->documents[r.b]->document.text(r.a));
    if (!value || !limit) return refuse(r, token);
    bool fits = false;
    switch (r.keyword) {
        case json_keyword::minimum:
            fits = *value >= *limit;
            break;
        case json_keyword::maximum:
            fits = *value <= *limit;
            break;
        case json_keyword::exclusive_minimum:
            fits = *value > *limit;
            break;
        case json_keyword::exclusive_maximum:
            fits = *value < *limit;
            break;
        default:
            fits = value->multiple_of(*limit);
    }
    return fits || refuse(r, token);
}

bool json_checker::size_rule(const json_plan::rule& r, index token) {
    const bool items = r.keyword == json_keyword::min_items || r.keyword == json_keyword::max_items;
    const bool least = r.keyword == json_keyword::min_items || r.keyword == json_keyword::min_properties;
    const auto& value = document_.at(token);
    if (value.kind != (items ? json_kind::array : json_kind::object)) return true;
    return (least ? value.size >= r.a : value.size <= r.a) || refuse(r, token);
}

bool json_checker::string_rule(const json_plan::rule& r, index token) {
    if (document_.at(token).kind != json_kind::string) return true;
    const auto text = document_.text(token);
    if (r.keyword == json_keyword::pattern) return matches(r.a, text) || refuse(r, token);
    const auto length = code_points(text);
    return (r.keyword == json_keyword::min_length ? length >= r.a : length <= r.a) || refuse(r, token);
}

bool json_checker::matches(std::uint32_t pattern, std::string_view text) {
    if (stop_ != stop::no) return false;
    const auto outcome = matcher_.search(plan_->patterns[pattern], text);
    if (outcome == pattern_matcher::outcome::too_costly) {
        refuse({json_keyword::pattern, pattern}, fault_.token);
        stop_ = stop::pattern_too_costly;
    }
    return outcome == pattern_matcher::outcome::found;
}

bool json_checker::array_rule(const json_plan::rule& r, index token) {
    const auto& value = document_.at(token);
    if (value.kind != json_kind::array) return true;
    if (r.keyword == json_keyword::unique_items) return distinct(token) || refuse(r, token);
    std::uint32_t place = 0;
    for (index item = token + 1; item < value.end; item = document_.at(item).end, ++place) {
        if (r.keyword == json_keyword::contains) {
            if (node(r.a, item)) return true;
        } else if (r.keyword == json_keyword::items) {
            if (place >= r.b && !node(r.a, item)) return false;
        } else if (place < r.b && !node(plan_->links[r.a + place], item)) {
            return false;
        }
    }
    return r.keyword != json_keyword::contains || refuse(r, token);
}

bool json_checker::distinct(index array) {
    hashes_.clear();
    for (index item = array + 1; item < document_.at(array).end; item = document_.at(item).end)
        hashes_.emplace_back(hash_value(document_, item), item);
    std::sort(hashes_.begin(), hashes_.end());
    for (std::size_t i = 1; i < hashes_.size(); ++i) {
        // Equal hashes of different values are so rare that the next of them need not be compared with all
        // before.
        const auto& [hash, item] = hashes_[i];
        if (hash == hashes_[i - 1].first && same_value(document_, item, document_, hashes_[i - 1].second))
            return false;
    }
    return true;
}

bool json_checker::enumerated(const json_plan::rule& r, index token) {
    const auto& values = plan_->documents[r.b]->document;
    for (index value = r.a + 1; value < values.at(r.a).end; value = values.at(value).end) {
        if (same_value(document_, token, values, value)) return true;
    }
    return refuse(r, token);
}

bool json_checker::object_rule(const json_plan::rule& r, index token) {
    const auto& value = document_.at(token);
    if (value.kind != json_kind::object) return true;
    const auto has = [&](std::uint32_t name) {
        return document_.member(token, plan_->text_of(plan_->names[name])) != json_document::none;
    };
    switch (r.keyword) {
        case json_keyword::required:
            return needs(r, r.a, r.b, token);
        case json_keyword::dependent_names:
            return !has(r.a) || needs(r, r.a + 1, r.b, token);
        case json_keyword::dependent_schema:
            return !has(r.a) || node(r.b, token);
        case json_keyword::members:
            return members(r, token);
        default:
            break;
    }
    for (index key = token + 1; key < value.end; key = document_.at(key + 1).end) {
        if (!node(r.a, key)) return false;
    }
    return true;
}

bool json_checker::needs(const json_plan::rule& r, std::uint32_t first, std::uint32_t count, index token) {
    for (std::uint32_t i = first; i < first + count; ++i) {
        const auto name = plan_->text_of(plan_->names[i]);
        if (document_.member(token, name) == json_document::none) return refuse(r, token, i);
    }
    return true;
}

bool json_checker::members(const json_plan::rule& r, index token) {
    const auto& rules = plan_->member_rules[r.a];
    for (index key = token + 1; key < document_.at(token).end; key = document_.at(key + 1).end) {
        fault_.token = key;
        if (!member(rules, key)) return false;
    }
    return true;
}

bool json_checker::member(const json_member_rules& rules, index key) {
    const auto name = document_.text(key);
    const auto begin = plan_->properties.begin() + rules.properties;
    const auto end = begin + rules.property_count;
    const auto found =
        std::lower_bound(begin, end, name, [this](const auto& property, std::string_view wanted) {
            return plan_->text_of(property.name) < wanted;
        });
    bool known = found != end && plan_->text_of(found->name) == name;
    if (known && !node(found->node, key + 1)) return false;
    for (std::uint32_t i = 0; i < rules.pattern_count; ++i) {
        const auto& property = plan_->pattern_properties[rules.patterns + i];
        if (!matches(property.pattern, name)) continue;
        known = true;
        if (!node(property.node, key + 1)) return false;
    }
    if (known || rules.additional == json_plan::none) return stop_ == stop::no;
    if (node(rules.additional, key + 1)) return true;
    // The name is what is wrong where nothing else is allowed.
    if (fault_.rule.keyword == json_keyword::never && fault_.token == key + 1) {
        return refuse({json_keyword::members}, key);
    }
    return false;
}

bool json_checker::combined_rule(const json_plan::rule& r, index token) {
    switch (r.keyword) {
        case json_keyword::all_of:
            for (std::uint32_t i = 0; i < r.b; ++i) {
                if (!node(plan_->links[r.a + i], token)) return false;
            }
            return true;
        case json_keyword::negation:
            if (!node(r.a, token)) return stop_ == stop::no;
            return refuse(r, token);
        case json_keyword::condition: {
            const bool holds = node(plan_->links[r.a], token);
            if (stop_ != stop::no) return false;
            const auto next = plan_->links[r.a + (holds ? 1 : 2)];
            return next == json_plan::none || node(next, token);
        }
        default:
            return alternatives(r, token);
    }
}

bool json_checker::alternatives(const json_plan::rule& r, index token) {
    const bool one = r.keyword == json_keyword::one_of;
    fault furthest{r, token, 0};
    std::uint32_t fitting = 0;
    for (std::uint32_t i = 0; i < r.b; ++i) {
        if (node(plan_->links[r.a + i], token)) {
            if (!one) return true;
            ++fitting;
        } else if (stop_ != stop::no) {
            return false;
        } else if (fault_.token > furthest.token) {
            furthest = fault_;
        }
    }
    if (fitting == 1) return true;
    if (fitting > 1) return refuse(r, token, fitting);
    // The alternative that went furthest into the value is the one that was probably meant.
    fault_ = furthest;
    return false;
}

}  // namespace millrace::schema
