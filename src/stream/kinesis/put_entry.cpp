#include "put_entry.hpp"

#include "record/bytes_text.hpp"
#include "record/hash_key.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr std::size_t key_characters_max = 256;

/// As Java counts: characters beyond the first plane are two.
std::size_t characters_of(std::string_view utf8) {
    std::size_t count = 0;
    for (const char c : utf8) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte & 0xc0U) != 0x80U) count += byte >= 0xf0 ? 2 : 1;
    }
    return count;
}

const record_header* explicit_hash_of(const outbox_row& row) {
    const auto found = std::ranges::find(row.headers, explicit_hash_header, &record_header::name);
    return found == row.headers.end() ? nullptr : &*found;
}

error refused(std::string detail) {
    return {errc::refused_record, retry_advice::never, false, std::move(detail)};
}

std::optional<error> why_key_refused(std::string_view key) {
    if (key.empty())
        return refused("an empty key cannot be a partition key of Kinesis, which has 1 to 256 characters");
    if (!is_utf8(key)) return refused("the key is not UTF-8, as a partition key of Kinesis must be");
    if (const auto count = characters_of(key); count > key_characters_max) {
        return refused(
            fmt::format("the key has {} characters; a partition key of Kinesis has at most 256", count)
        );
    }
    return std::nullopt;
}

}  // namespace

std::optional<error> why_refused(const outbox_row& row, const kinesis_losses& losses, bool named_by_topic) {
    if (!row.malformed.empty()) return refused(std::string(row.malformed));
    if (named_by_topic) {
        if (auto usable = check_kinesis_stream_name(row.topic); !usable)
            return error{errc::refused_topic, retry_advice::never, false, std::move(usable.error().detail)};
    }
    if (!row.value && !losses.empty_tombstones) {
        return refused("a row without a value is a tombstone, which a Kinesis record cannot be");
    }
    const auto* const hash = explicit_hash_of(row);
    if (hash != nullptr) {
        const auto text = hash->value.value_or("");
        const auto parsed = hash_key::parse(text);
        if (!parsed || parsed->to_string() != text) {  // Kinesis takes no leading zeros
            return refused(fmt::format(
                "the header {} is no decimal from 0 to 2^128 - 1 without leading zeros", explicit_hash_header
            ));
        }
    }
    if (!losses.drop_headers && row.headers.size() > (hash != nullptr ? 1U : 0U)) {
        return refused("the row has headers, which a Kinesis record has no place for");
    }
    if (row.key) {
        if (auto why = why_key_refused(*row.key)) return why;
    }
    const auto bytes = row.key.value_or("").size() + row.value.value_or("").size();
    if (bytes > losses.record_bytes_max) {
        return refused(fmt::format(
            "key and value have {} bytes; a record of this stream has at most {} (record_bytes_max)",
            bytes,
            losses.record_bytes_max
        ));
    }
    return std::nullopt;
}

aws::kinesis::put_entry entry_of(const outbox_row& row, std::uint64_t random, std::string& key_room) {
    aws::kinesis::put_entry entry;
    entry.data.bytes = row.value.value_or("");
    if (!row.key) key_room = fmt::format("{:015x}", random >> 4U);  // fits without memory of its own
    entry.key = row.key ? *row.key : std::string_view(key_room);
    if (const auto* const hash = explicit_hash_of(row)) entry.explicit_hash = *hash->value;
    return entry;
}

}  // namespace millrace
