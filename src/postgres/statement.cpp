#include "statement.hpp"

namespace millrace::postgres {

void statement::refer(type_id type, std::string_view bytes) {
    // An empty view may be null, which is not NULL.
    parameters_.push_back({type, bytes.data() == nullptr ? "" : bytes.data(), 0, bytes.size(), false});
}

void statement::add(std::int64_t value) {
    encode(type_id::int8, [&](std::string& out) { append_integer(out, value); });
}

void statement::add(bool value) {
    encode(type_id::boolean, [&](std::string& out) { append_boolean(out, value); });
}

void statement::add(wall_time value) {
    encode(type_id::timestamptz, [&](std::string& out) { append_time(out, value); });
}

void statement::add(std::span<const std::int64_t> values) {
    encode(type_id::int8_array, [&](std::string& out) { append_array(out, values); });
}

void statement::add(text_array array) {
    encode(type_id::text_array, [&](std::string& out) { append_array(out, type_id::text, array.values); });
}

void statement::add(bytes_array array) {
    encode(type_id::bytea_array, [&](std::string& out) { append_array(out, type_id::bytea, array.values); });
}

void statement::add(std::nullopt_t) {
    parameters_.push_back({type_id::unknown, nullptr, 0, 0, true});
}

statement::parameter statement::at(std::size_t index) const {
    const auto& one = parameters_[index];
    if (one.null) return {one.type, std::nullopt};
    const char* begin = one.bytes != nullptr ? one.bytes : encoded_.data() + one.offset;
    return {one.type, std::string_view(begin, one.length)};
}

}  // namespace millrace::postgres
