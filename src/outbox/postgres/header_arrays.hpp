/// The headers of a row: an array of names and one of values, as the server sends them.
///
/// Pure functions; views point into the arrays.
#pragma once

#include "binary.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace millrace::postgres {

/// Calls `add(name, value)` for each header. Returns why the headers are none, or nothing; an absent array is
/// an empty one.
template <class F>
[[nodiscard]] std::string_view each_header(
    std::optional<std::string_view> names, std::optional<std::string_view> values, F&& add
) {
    auto name = names ? array_reader::open(*names) : std::nullopt;
    auto value = values ? array_reader::open(*values) : std::nullopt;
    if ((names && !name) || (values && !value)) return "the headers are no arrays of one dimension";
    const auto count = name ? name->size() : 0;
    if (count != (value ? value->size() : 0)) return "there are not as many header values as header names";
    for (std::size_t i = 0; i < count; ++i) {
        const auto one_name = name->next();
        const auto one_value = value->next();
        if (!one_name || !one_value) return "the headers cannot be decoded";
        if (!one_name->value) return "a header has no name";
        add(*one_name->value, one_value->value);
    }
    return {};
}

}  // namespace millrace::postgres
