/// A process of the world, whatever it does.
#pragma once

#include "member.hpp"

#include <string>

namespace millrace::sim {

class process {
public:
    virtual ~process() = default;

    virtual void start() = 0;

    /// As on SIGTERM; completes on the loop.
    virtual void stop(completion<void> done) = 0;
    [[nodiscard]] virtual member& part() = 0;

    /// Says by how much a memory budget is exceeded; empty when none is.
    [[nodiscard]] virtual std::string over_budget() const = 0;
};

}  // namespace millrace::sim
