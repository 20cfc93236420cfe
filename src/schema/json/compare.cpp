#include "json/compare.hpp"

#include "json/decimal.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

namespace millrace::schema {

namespace {

using index = json_document::index;

std::vector<index> sorted_keys(const json_document& document, index object) {
    std::vector<index> keys;
    keys.reserve(document.at(object).size);
    for (index key = object + 1; key < document.at(object).end; key = document.at(key + 1).end)
        keys.push_back(key);
    std::sort(keys.begin(), keys.end(), [&](index x, index y) {
        return document.text(x) < document.text(y);
    });
    return keys;
}

bool same_members(const json_document& a, index in_a, const json_document& b, index in_b) {
    const auto keys_a = sorted_keys(a, in_a);
    const auto keys_b = sorted_keys(b, in_b);
    for (std::size_t i = 0; i < keys_a.size(); ++i) {
        if (a.text(keys_a[i]) != b.text(keys_b[i])) return false;
        if (!same_value(a, keys_a[i] + 1, b, keys_b[i] + 1)) return false;
    }
    return true;
}

bool same_elements(const json_document& a, index in_a, const json_document& b, index in_b) {
    index y = in_b + 1;
    for (index x = in_a + 1; x < a.at(in_a).end; x = a.at(x).end) {
        if (!same_value(a, x, b, y)) return false;
        y = b.at(y).end;
    }
    return true;
}

bool same_number(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const auto x = decimal::read(a);
    const auto y = decimal::read(b);
    return x && y && *x == *y;
}

std::uint64_t mixed(std::uint64_t h, std::uint64_t more) {
    h ^= more + 0x9E3779B97F4A7C15U + (h << 6U) + (h >> 2U);
    return h * 0xD6E8FEB86659FD93U;
}

std::uint64_t hash_number(std::string_view text) {
    const auto number = decimal::read(text);
    if (!number) return 0;
    std::uint64_t h = mixed(number->negative() ? 1 : 0, static_cast<std::uint64_t>(number->exponent()));
    for (std::size_t i = 0; i < number->digits(); ++i)
        h = mixed(h, number->digit(i));
    return h;
}

}  // namespace

bool same_value(const json_document& a, index in_a, const json_document& b, index in_b) {
    const auto& x = a.at(in_a);
    const auto& y = b.at(in_b);
    if (x.kind != y.kind) return false;
    switch (x.kind) {
        case json_kind::null:
            return true;
        case json_kind::boolean:
            return x.truth == y.truth;
        case json_kind::number:
            return same_number(a.text(in_a), b.text(in_b));
        case json_kind::string:
            return a.text(in_a) == b.text(in_b);
        case json_kind::array:
            return x.size == y.size && same_elements(a, in_a, b, in_b);
        case json_kind::object:
            return x.size == y.size && same_members(a, in_a, b, in_b);
    }
    return false;
}

std::uint64_t hash_value(const json_document& document, index token) {
    const auto& value = document.at(token);
    const auto begin = mixed(static_cast<std::uint64_t>(value.kind), value.truth ? 1 : 0);
    const auto text = [&](index t) { return std::hash<std::string_view>{}(document.text(t)); };
    switch (value.kind) {
        case json_kind::number:
            return mixed(begin, hash_number(document.text(token)));
        case json_kind::string:
            return mixed(begin, text(token));
        case json_kind::array: {
            auto h = begin;
            for (index item = token + 1; item < value.end; item = document.at(item).end)
                h = mixed(h, hash_value(document, item));
            return h;
        }
        case json_kind::object: {
            // A sum, so that the order of the members does not matter.
            std::uint64_t sum = 0;
            for (index key = token + 1; key < value.end; key = document.at(key + 1).end)
                sum += mixed(text(key), hash_value(document, key + 1));
            return mixed(begin, sum);
        }
        default:
            return begin;
    }
}

}  // namespace millrace::schema
