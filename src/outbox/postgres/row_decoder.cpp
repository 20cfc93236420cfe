#include "row_decoder.hpp"

#include "header_arrays.hpp"
#include "outbox_sql.hpp"

#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

std::size_t size_of(const rows& from, std::size_t index) {
    auto sum = sizeof(outbox_row);
    for (const int column :
         {row_column::topic, row_column::key, row_column::value, row_column::names, row_column::values}) {
        sum += from.value(index, column).value_or("").size();
    }
    return sum;
}

void read_partition(const rows& from, std::size_t index, outbox_row& into, row_batch& batch) {
    const auto partition = from.integer(index, row_column::partition);
    if (!partition) return;
    if (*partition < 0 || *partition > std::numeric_limits<std::int32_t>::max()) {
        into.malformed =
            batch.store(fmt::format("the partition {} is no number from 0 to 2147483647", *partition));
        return;
    }
    into.partition = static_cast<std::int32_t>(*partition);
}

/// Infinity is no time to send, and 0 and less mean "now" or "none" to sinks.
void read_timestamp(const rows& from, std::size_t index, outbox_row& into) {
    if (from.is_null(index, row_column::timestamp)) return;
    into.timestamp = from.time(index, row_column::timestamp);
    if (into.timestamp && into.timestamp->time_since_epoch() > milliseconds::zero()) return;
    into.timestamp.reset();
    into.malformed = "the timestamp is no time after 1970-01-01T00:00:00Z";
}

}  // namespace

row_decoder::outcome row_decoder::decode(const rows& from, std::size_t rows_max, std::size_t bytes_max) {
    taken_.clear();
    headers_.clear();
    first_header_.clear();
    auto batch = std::make_shared<row_batch>();
    outcome result;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
        result.cut_large = taken_.size() < rows_max && from.boolean(i, row_column::cut).value_or(false);
        const auto size = size_of(from, i);
        if (result.cut_large || taken_.size() == rows_max || (!taken_.empty() && bytes + size > bytes_max)) {
            result.cut = true;
            break;
        }
        bytes += size;
        outbox_row row;
        row.id = row_id{from.integer(i, row_column::id).value_or(0)};
        row.topic = batch->store(from.value(i, row_column::topic).value_or(""));
        if (const auto key = from.value(i, row_column::key)) row.key = batch->store(*key);
        if (const auto value = from.value(i, row_column::value)) row.value = batch->store(*value);
        if (const auto at = from.time(i, row_column::created)) row.created_at = *at;
        if (row.topic.empty()) row.malformed = "the topic is empty";
        read_timestamp(from, i, row);
        read_partition(from, i, row, *batch);
        first_header_.push_back(headers_.size());
        read_headers(from, i, row, *batch);
        taken_.push_back(row);
    }

    batch->reserve(taken_.size());
    std::span<const record_header> headers;
    if (!headers_.empty()) headers = batch->store(std::vector<record_header>(headers_));
    first_header_.push_back(headers_.size());
    for (std::size_t i = 0; i < taken_.size(); ++i) {
        taken_[i].headers = headers.subspan(first_header_[i], first_header_[i + 1] - first_header_[i]);
        batch->add(taken_[i]);
    }
    result.batch = std::move(batch);
    return result;
}

void row_decoder::read_headers(const rows& from, std::size_t index, outbox_row& into, row_batch& batch) {
    const auto names = from.value(index, row_column::names);
    const auto values = from.value(index, row_column::values);
    if (!names && !values) return;
    const auto begin = headers_.size();
    const auto add = [&](std::string_view name, std::optional<std::string_view> value) {
        headers_.push_back({batch.store(name), std::nullopt});
        if (value) headers_.back().value = batch.store(*value);
    };
    const auto fault = each_header(names, values, add);
    if (fault.empty()) return;
    into.malformed = fault;
    headers_.resize(begin);
}

}  // namespace millrace::postgres
