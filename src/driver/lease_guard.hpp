/// Whether a lease may still be acted on, asked from any thread: what a handler call under way checks before
/// its outside effects, and a pool job before it begins.
///
/// Made by the group driver, one a grant, and dropped by it when the lease ends in whatever way (released,
/// finished, lost, driver destroyed). The deadline is asked of the session itself and not of the loop, so a
/// loop that is late cannot keep a lease alive. Holders may keep it longer than the driver lives.
#pragma once

#include "port/host.hpp"
#include "session_driver.hpp"

#include <millrace/names.hpp>

#include <mutex>
#include <utility>

namespace millrace {

class lease_guard {
public:
    /// `session` is null in all-shards mode: then only `drop` ends the lease. Both must live until `drop`.
    lease_guard(const host& clock, const session_view* session, incarnation mine)
        : clock_(clock), session_(session), mine_(std::move(mine)) {}

    /// Thread-safe.
    [[nodiscard]] bool may_act() const {
        const std::scoped_lock lock(mutex_);
        return held_ && (session_ == nullptr || clock_.now() < session_->deadline(mine_));
    }

    /// Final. When it has returned, neither the clock nor the session is touched any more. Thread-safe.
    void drop() {
        const std::scoped_lock lock(mutex_);
        held_ = false;
    }

private:
    const host& clock_;
    const session_view* session_;
    incarnation mine_;
    mutable std::mutex mutex_;
    bool held_{true};
};

}  // namespace millrace
