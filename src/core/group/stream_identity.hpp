/// Whether the stream that is listed is the one that a group has checkpoints of.
///
/// An identity is opaque, or `PLACE of MOMENT`: what the stream is called by everybody, and a whole number
/// that grows when it is deleted and made again. Pure functions.
#pragma once

#include <millrace/error.hpp>

#include <cstdint>
#include <string_view>

namespace millrace {

enum class stream_relation : std::uint8_t {
    same,
    remade,  ///< Deleted and made again: the old checkpoints mean nothing in it.
    other,   ///< Another one, or an older one: whoever lists it has the wrong address.
};

/// `known` stands in the group row. A place that is no ARN (of an earlier version) is the name at its end.
[[nodiscard]] stream_relation relation_of(std::string_view known, std::string_view listed);

/// Of `other`: what is wrong and what to do.
[[nodiscard]] error other_stream(std::string_view known, std::string_view listed);

}  // namespace millrace
