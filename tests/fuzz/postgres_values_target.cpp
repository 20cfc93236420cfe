#include "binary.hpp"
#include "lease_columns.hpp"
#include "targets.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace millrace::fuzz {

namespace {

using namespace postgres;

void check_array(std::string_view bytes) {
    auto array = array_reader::open(bytes);
    if (!array) return;
    require(array->size() <= bytes.size() / 4, "an array has no more elements than bytes stand for");
    std::vector<std::optional<std::string_view>> values;
    for (std::size_t i = 0; i < array->size(); ++i) {
        const auto item = array->next();
        if (!item) return;
        values.push_back(item->value);
    }
    std::string again;
    append_array(again, array->element(), values);
    auto copy = array_reader::open(again);
    require(copy && copy->size() == values.size(), "an array that is written reads as one of its size");
    for (const auto& value : values) {
        const auto item = copy->next();
        require(item && item->value == value, "an element that is written reads as itself");
    }
}

void check_scalars(std::string_view bytes) {
    (void)decode_boolean(bytes);
    if (const auto value = decode_integer(bytes)) {
        std::string again;
        append_integer(again, *value);
        require(decode_integer(again) == value, "an integer that is written reads as itself");
    }
    if (const auto time = decode_time(bytes)) {
        std::string again;
        append_time(again, *time);
        require(decode_time(again) == time, "a time that is written reads as itself");
    }
}

template <class Row>
void check_row(const result<Row>& row) {
    if (row) return;
    require(row.error().code == errc::corrupt, "a row that cannot be read is corrupt");
    require(row.error().detail.find("column ") != std::string::npos, "a refusal names the column");
}

/// Values one behind the other: a byte of length, 255 for NULL, then the bytes.
std::vector<std::optional<std::string_view>> columns_of(std::string_view bytes, std::size_t count) {
    std::vector<std::optional<std::string_view>> values;
    while (values.size() < count) {
        const auto length = bytes.empty() ? 0U : static_cast<unsigned char>(bytes.front());
        if (!bytes.empty()) bytes.remove_prefix(1);
        if (length == 255) {
            values.emplace_back(std::nullopt);
            continue;
        }
        const auto value = bytes.substr(0, length);
        bytes.remove_prefix(value.size());
        values.emplace_back(value);
    }
    return values;
}

}  // namespace

void postgres_values(std::string_view bytes) {
    check_array(bytes);
    check_scalars(bytes);
    check_row(decode_group(columns_of(bytes, group_columns.size()), "here"));
    check_row(decode_worker(columns_of(bytes, worker_columns.size()), "here"));
    check_row(decode_shard(columns_of(bytes, shard_columns.size()), "here"));
}

}  // namespace millrace::fuzz
