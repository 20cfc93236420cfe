/// MD5, by which Kinesis and the local stream spread keys over their shards and KPL aggregates are checked.
/// Not for security. Pure functions, no allocation; needs no crypto library that may refuse it (FIPS).
#pragma once

#include "record/hash_key.hpp"

#include <array>
#include <string_view>

namespace millrace {

using md5_digest = std::array<unsigned char, hash_key::bytes>;

[[nodiscard]] md5_digest md5(std::string_view bytes) noexcept;

/// The point of a key on the ring.
[[nodiscard]] inline hash_key hash_of(std::string_view key) noexcept {
    return hash_key::from_digest(md5(key));
}

}  // namespace millrace
