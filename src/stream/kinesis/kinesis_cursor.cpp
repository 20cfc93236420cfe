#include "kinesis_cursor.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr std::string_view mark = "k1";
constexpr std::string_view end_mark = "end";
constexpr std::size_t records_max = 10'000;  // the API's
constexpr std::size_t unknown_record_bytes = 64 << 10;

template <class Number>
bool read_number(std::string_view text, Number& out) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
    return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

}  // namespace

read_cursor to_text(const kinesis_cursor& cursor) {
    if (cursor.at_end) return read_cursor{fmt::format("{}:{}", mark, end_mark)};
    return read_cursor{fmt::format(
        "{}:{}:{}:{}:{}",
        mark,
        cursor.record_bytes,
        cursor.after ? cursor.after->sequence.to_string() : "",
        cursor.after ? cursor.after->sub_sequence : 0,
        cursor.iterator
    )};
}

result<kinesis_cursor> parse_kinesis_cursor(std::string_view text) {
    const auto bad = [] {
        return fail(
            errc::invalid_argument, "a read cursor was not given by a Kinesis source; open the shard again"
        );
    };
    std::array<std::string_view, 4> parts;
    kinesis_cursor cursor;
    for (auto& part : parts) {
        const auto colon = text.find(':');
        if (colon == std::string_view::npos) return bad();
        part = text.substr(0, colon);
        text.remove_prefix(colon + 1);
        if (part == mark && text == end_mark && &part == parts.data()) {
            cursor.at_end = true;
            return cursor;
        }
    }
    position after;
    if (parts[0] != mark || !read_number(parts[1], cursor.record_bytes) ||
        !read_number(parts[3], after.sub_sequence) || text.empty())
        return bad();
    if (!parts[2].empty()) {
        const auto sequence = sequence_number::parse(parts[2]);
        if (!sequence) return bad();
        after.sequence = *sequence;
        cursor.after = after;
    }
    cursor.iterator = text;
    return cursor;
}

std::size_t records_to_ask(std::size_t record_bytes, const read_limits& limits) {
    const auto each = record_bytes == 0 ? unknown_record_bytes : record_bytes;
    const auto most = std::clamp<std::size_t>(limits.records_max, 1, records_max);
    return std::clamp<std::size_t>(limits.bytes_max / each, 1, most);
}

std::size_t next_average(std::size_t before, std::size_t records, std::size_t bytes) {
    if (records == 0) return before;
    const auto now = std::max<std::size_t>(bytes / records, 1);
    return before == 0 ? now : std::max(now, (3 * before + now) / 4);
}

}  // namespace millrace
