/// What the failures of the Kinesis API mean for a reader: one place for every text that decides. Pure.
#pragma once

#include "api.hpp"
#include "kinesis_url.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>

#include <cstdint>
#include <string>

namespace millrace {

/// "stream \"orders\" in eu-west-1", for messages.
[[nodiscard]] std::string shown(const kinesis_address& stream);

/// Of a request about the stream as a whole, or of one that needs no closer look.
[[nodiscard]] error of_stream(const aws::api_failure& what, const kinesis_address& stream);

enum class refusal : std::uint8_t {
    plain,        ///< As `of_shard` has it.
    shard_end,    ///< The position is the end of a closed shard: nothing is left to read.
    look_closer,  ///< The stream or only the shard does not exist; a listing tells which.
};
[[nodiscard]] refusal kind_of(const aws::api_failure& what);

/// Of GetShardIterator (`opening`) or GetRecords. Every refusal of an iterator is `expired_cursor`: a new one
/// is made from the last position. Of positions: `conflict` for one of an older stream of the same name,
/// `invalid_argument` for one of another shard, `unavailable` for a moment that is still to come.
[[nodiscard]] error of_shard(
    const aws::api_failure& what, const kinesis_address& stream, const shard_id& shard, bool opening
);

}  // namespace millrace
