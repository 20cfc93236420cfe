/// One reply of GetRecords in CBOR, rendered once and patched for each request: what a server costs that does
/// not count is left out of the measurement.
///
/// All records have the same size; a reply differs in sequence numbers, in the next iterator, and in how many
/// records it holds. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::bench {

/// A place in a shard, as the stand-in's iterators and sequence numbers tell it.
struct shard_place {
    std::uint32_t shard{0};
    std::uint64_t index{0};  ///< Of the next record.
};

[[nodiscard]] std::string to_iterator(const shard_place& place);
[[nodiscard]] std::optional<shard_place> from_iterator(std::string_view text);

/// 56 digits, as the service's are.
[[nodiscard]] std::string to_sequence(const shard_place& place);
[[nodiscard]] std::optional<shard_place> from_sequence(std::string_view text);

class page {
public:
    page(std::size_t records, std::size_t record_bytes);

    struct parts {
        std::string_view head;  ///< Up to and with the last record.
        std::string_view tail;
    };
    /// Valid until the next call. At most `records` of the constructor.
    [[nodiscard]] parts render(const shard_place& from, std::size_t records, std::int64_t millis_behind);

private:
    std::string head_;
    std::string tail_;
    std::size_t first_{0};        // where the records begin
    std::size_t size_{0};         // of one of them
    std::size_t sequence_at_{0};  // within it
    std::size_t iterator_at_{0};
    std::size_t behind_at_{0};
};

}  // namespace millrace::bench
