/// What keeps a group from doing all its work now: what the latest listings of the stream and of the workers
/// met. Plain data.
#pragma once

#include <millrace/error.hpp>

#include <optional>

namespace millrace {

struct group_trouble {
    std::optional<error> stream;
    std::optional<error> workers;

    [[nodiscard]] const std::optional<error>& first() const noexcept { return stream ? stream : workers; }
};

}  // namespace millrace
