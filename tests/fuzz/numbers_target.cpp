#include "record/hash_key.hpp"
#include "targets.hpp"

#include <millrace/position.hpp>

#include <string>

namespace millrace::fuzz {

namespace {

std::string_view without_zeros(std::string_view decimal) {
    const auto first = decimal.find_first_not_of('0');
    return first == std::string_view::npos ? "0" : decimal.substr(first);
}

std::strong_ordering by_digits(std::string_view one, std::string_view other) {
    return one.size() != other.size() ? one.size() <=> other.size() : one <=> other;
}

/// Prints as itself, and compares as the digits do.
template <class Number>
void check_pair(std::string_view first, std::string_view second) {
    const auto one = Number::parse(first);
    const auto other = Number::parse(second);
    if (one) require(one->to_string() == without_zeros(first), "a number prints as its digits");
    if (!one || !other) return;
    const auto expected = by_digits(without_zeros(first), without_zeros(second));
    require((*one <=> *other) == expected, "numbers compare as their digits do");
}

void check_split(const hash_key& from, const hash_key& to) {
    if (from > to) return;
    const hash_range whole{from, to};
    const auto halves = split_in_middle(whole);
    require(halves.has_value() == (from < to), "whatever is longer than a point splits");
    if (!halves) return;
    require(halves->first.from == from && halves->second.to == to, "the halves cover the whole");
    require(!halves->first.contains(halves->second.from), "the halves do not overlap");
    require(join(halves->second, halves->first) == whole, "the halves join to the whole");
}

}  // namespace

void numbers(std::string_view text) {
    const auto comma = std::min(text.find(','), text.size());
    const auto first = text.substr(0, comma);
    const auto second = comma < text.size() ? text.substr(comma + 1) : first;
    check_pair<sequence_number>(first, second);
    check_pair<hash_key>(first, second);
    const auto from = hash_key::parse(first);
    const auto to = hash_key::parse(second);
    if (from && to) check_split(*from, *to);
}

}  // namespace millrace::fuzz
