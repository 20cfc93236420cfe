/// Opens the aggregates of the Kinesis Producer Library: many user records in the data of one stream record.
///
/// Layout: `F3 89 9A C2`, a protobuf message, the MD5 of that message. Whatever does not fit it in every
/// detail is no aggregate and is delivered as it is, never an error. Sub-records are views into the data of
/// the outer record; they have its sequence number and arrival time, and their place in it as sub-sequence.
/// Pure; an object is used by one thread at a time and keeps its memory between calls.
#pragma once

#include "record/hash_key.hpp"

#include <millrace/position.hpp>
#include <millrace/record.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace millrace {

class kpl_opener {
public:
    /// Which sub-records are wanted. A producer that aggregated for a shard that was split meanwhile sends
    /// the same sub-records to the sibling again, so those outside the shard's range are left out.
    struct filter {
        std::optional<hash_range> range;  ///< Of the shard; none: all are wanted.
        std::optional<position> after;    ///< Only what lies behind; also of records that are no aggregates.
    };

    struct counters {
        std::uint64_t aggregates{0};
        std::uint64_t sub_records{0};  ///< Those left out included.
        std::uint64_t foreign{0};      ///< Left out: of another shard's range.
    };

    /// Adds to `batch`, which must own the bytes of `outer`, what is wanted of it.
    void add(record_batch& batch, const record& outer, const filter& wanted);

    [[nodiscard]] const counters& totals() const noexcept { return counters_; }

private:
    struct sub_record {
        std::uint64_t key{0};
        std::optional<std::uint64_t> hash;  ///< Index of an explicit hash key.
        std::optional<std::string_view> data;
    };

    [[nodiscard]] bool parse(std::string_view data);
    [[nodiscard]] bool parse_message(std::string_view message);
    [[nodiscard]] static bool parse_sub_record(std::string_view message, sub_record& out);
    [[nodiscard]] bool indexes_fit() const;

    std::vector<std::string_view> keys_;
    std::vector<hash_key> hashes_;
    std::vector<sub_record> subs_;
    counters counters_;
};

}  // namespace millrace
