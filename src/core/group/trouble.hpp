/// What keeps a group from doing all its work now: what the latest listings of the stream and of the workers
/// met, and a row of a shard that cannot be read. Plain data.
#pragma once

#include <millrace/error.hpp>

#include <optional>

namespace millrace {

struct group_trouble {
    std::optional<error> stream;
    std::optional<error> workers;
    std::optional<error> rows;

    [[nodiscard]] const std::optional<error>& first() const noexcept {
        if (stream) return stream;
        return workers ? workers : rows;
    }
};

}  // namespace millrace
