#include "group/page.hpp"

#include "support/kinesis_fake/wire.hpp"

#include <charconv>

#include <fmt/format.h>

namespace millrace::bench {

namespace {

using namespace kinesis_fake;

constexpr std::size_t shard_digits = 5;
constexpr std::size_t index_digits = 12;
constexpr std::string_view sequence_head = "495903382714902566085596925383615710959";  // 39 digits
constexpr std::size_t iterator_bytes = 220;                                            // as long as real ones

/// The body of a map without its first byte and its last, so that parts of it can be joined.
std::string inside_of(const value_map& what) {
    const auto whole = encode(wire_form::cbor, value{what}, true);
    return whole.substr(1, whole.size() - 2);
}

std::optional<shard_place> read_digits(std::string_view text) {
    shard_place place;
    const auto read = [&](std::size_t from, std::size_t count, auto& to) {
        const char* begin = text.data() + from;
        return std::from_chars(begin, begin + count, to).ptr == begin + count;
    };
    if (text.size() < shard_digits + index_digits || !read(0, shard_digits, place.shard) ||
        !read(shard_digits, index_digits, place.index))
        return std::nullopt;
    return place;
}

void write_digits(char* to, std::size_t digits, std::uint64_t number) {
    for (std::size_t i = digits; i-- > 0; number /= 10)
        to[i] = static_cast<char>('0' + number % 10);
}

}  // namespace

std::string to_iterator(const shard_place& place) {
    auto text = fmt::format("{:05}{:012}", place.shard, place.index);
    text.resize(iterator_bytes, 'A');
    return text;
}

std::optional<shard_place> from_iterator(std::string_view text) {
    return read_digits(text);
}

std::string to_sequence(const shard_place& place) {
    return fmt::format("{}{:05}{:012}", sequence_head, place.shard, place.index);
}

std::optional<shard_place> from_sequence(std::string_view text) {
    if (!text.starts_with(sequence_head)) return std::nullopt;
    return read_digits(text.substr(sequence_head.size()));
}

page::page(std::size_t records, std::size_t record_bytes) {
    constexpr std::int64_t arrived = 1'764'518'400'000;
    const auto sequence = to_sequence({});
    const auto record = encode(
        wire_form::cbor,
        value{value_map{
            {"SequenceNumber", value{sequence}},
            {"ApproximateArrivalTimestamp", value{moment{arrived}}},
            {"Data", value{blob{std::string(record_bytes, 'x')}}},
            {"PartitionKey", value{std::string("customer-000000")}}}},
        true
    );
    size_ = record.size();
    sequence_at_ = record.find(sequence) + sequence_head.size();
    auto list = inside_of({{"Records", value{value_list{}}}});
    list.pop_back();  // the list's end
    head_ = "\xbf" + list;
    first_ = head_.size();
    for (std::size_t i = 0; i < records; ++i)
        head_ += record;

    const auto iterator = to_iterator({});
    tail_ = "\xff" + inside_of({{"NextShardIterator", value{iterator}}});
    iterator_at_ = tail_.find(iterator);
    constexpr std::int64_t eight_bytes = 0x0101'0101'0101'0101;
    tail_ += inside_of({{"MillisBehindLatest", value{eight_bytes}}});
    behind_at_ = tail_.size() - 8;
    tail_ += '\xff';
}

page::parts page::render(const shard_place& from, std::size_t records, std::int64_t millis_behind) {
    for (std::size_t i = 0; i < records; ++i) {
        char* const at = head_.data() + first_ + i * size_ + sequence_at_;
        write_digits(at, shard_digits, from.shard);
        write_digits(at + shard_digits, index_digits, from.index + i);
    }
    char* const iterator = tail_.data() + iterator_at_;
    write_digits(iterator, shard_digits, from.shard);
    write_digits(iterator + shard_digits, index_digits, from.index + records);
    for (std::size_t i = 0; i < 8; ++i)
        tail_[behind_at_ + i] =
            static_cast<char>((static_cast<std::uint64_t>(millis_behind) >> (8 * (7 - i))) & 0xffU);
    return {std::string_view(head_).substr(0, first_ + records * size_), tail_};
}

}  // namespace millrace::bench
