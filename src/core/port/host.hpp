/// What a driver needs from whatever it runs on: time, timers, randomness and a log.
///
/// `runtime` implements it on an event loop, `sim` on a simulated clock. A driver and everything it owns live
/// on one host and are only touched there; `now` and `post` alone may be called from any thread.
#pragma once

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace millrace {

/// Receives the outcome of an asynchronous request: exactly once, on the host, never inside the call that
/// asked.
template <class T>
using completion = std::function<void(result<T>)>;

class host {
public:
    using timer = std::uint64_t;

    virtual ~host() = default;

    [[nodiscard]] virtual mono_time now() const = 0;  ///< Thread-safe.
    [[nodiscard]] virtual wall_time wall() const = 0;
    [[nodiscard]] virtual std::uint64_t random() = 0;

    /// Calls `what` once at or soon after `when`.
    virtual timer call_at(mono_time when, std::function<void()> what) = 0;

    /// Forgets a timer; no effect once it has been called.
    virtual void cancel(timer which) = 0;

    /// Calls `what` soon, after the present call has returned. Thread-safe.
    virtual void post(std::function<void()> what) = 0;

    [[nodiscard]] virtual log_sink& log() = 0;
};

/// Lets an object hand out callbacks that do nothing once it is gone.
class lifetime {
public:
    template <class F>
    [[nodiscard]] auto guard(F callback) const {
        return [alive = std::weak_ptr<const char>(token_), callback = std::move(callback)](auto&&... args) {
            if (alive.lock()) callback(std::forward<decltype(args)>(args)...);
        };
    }

    /// Makes every callback that was handed out so far a no-op.
    void renew() { token_ = std::make_shared<const char>(); }

private:
    std::shared_ptr<const char> token_ = std::make_shared<const char>();
};

}  // namespace millrace
