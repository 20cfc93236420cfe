/// The first look at everything that a run needs, so that what is missing is said at once and together.
///
/// Lives on the loop.
#pragma once

#include "port/host.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace millrace {

/// Looks at several things at once and reports all that are unusable in one error.
///
/// A fault that mends by itself (a locked file, a service that restarts) is no reason not to start; a file
/// that may not be opened is.
class start_checks {
public:
    using check = std::function<void(completion<void>)>;

    void add(check what) { checks_.push_back(std::move(what)); }

    /// Once. Completes on the loop, also when there is nothing to check.
    void run(host& loop, completion<void> done);

private:
    void ended(const result<void>& outcome);

    std::vector<check> checks_;
    std::size_t open_{0};
    std::optional<error> faults_;
    completion<void> done_;
    lifetime alive_;
};

/// A file that may not be opened, or a wrong setting, seldom mends by itself, so at the start it is said
/// instead of awaited.
[[nodiscard]] bool keeps_from_starting(const error& why);

/// Joins faults so that a person sees all of them; the first decides what can be done.
void add_fault(std::optional<error>& all, const error& next);

/// Turns any outcome into a mere success or failure.
template <class T>
[[nodiscard]] auto outcome_only(completion<void> done) {
    return [done = std::move(done)](const result<T>& got) {
        if (got)
            done({});
        else
            done(tl::unexpected(got.error()));
    };
}

}  // namespace millrace
