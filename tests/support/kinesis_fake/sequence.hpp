/// The numbers that Kinesis gives to records, as its second version makes them: they tell the shard, the
/// moment the shard was born and the moment the record came. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::kinesis_fake {

struct sequence_parts {
    std::uint64_t shard_born{0};  ///< Seconds since 1970; tells a stream from an older one of the same name.
    std::uint64_t index{0};       ///< Grows within a stream; at most `sequence_index_max`.
    std::uint64_t second{0};      ///< When the record came.
    std::uint32_t shard{0};

    bool operator==(const sequence_parts&) const = default;
};

/// The index in the number that a closed shard ends with: no record has it.
inline constexpr std::uint64_t sequence_index_max = 0x7fff'ffff'ffff'ffff;

/// A decimal of 56 digits.
[[nodiscard]] std::string to_sequence(const sequence_parts& parts);

/// Nothing when the service would not have made such a number.
[[nodiscard]] std::optional<sequence_parts> from_sequence(std::string_view decimal);

}  // namespace millrace::kinesis_fake
