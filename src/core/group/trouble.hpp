/// What keeps a group from doing all its work now: what the latest listings of the stream and of the workers
/// met, and rows that cannot be read; that of a worker keeps nobody from work. Plain data.
#pragma once

#include <millrace/error.hpp>

#include <optional>

namespace millrace {

struct group_trouble {
    std::optional<error> stream;
    std::optional<error> workers;
    std::optional<error> rows;
    std::optional<error> worker_rows;

    [[nodiscard]] const std::optional<error>& first() const noexcept {
        if (stream) return stream;
        return workers ? workers : rows;
    }
};

}  // namespace millrace
