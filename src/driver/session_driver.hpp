/// Keeps one worker's session alive: registers, renews, notices its end, registers anew, deregisters.
///
/// Lives on the keeper's host with a store of its own, so that nothing else can delay a heartbeat. The loop
/// sees it only through `session_view` and through the listener, whose calls the runtime posts to the loop.
#pragma once

#include "group/session.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <atomic>
#include <functional>
#include <memory>

namespace millrace {

/// What others may ask of a session. All functions are thread-safe and do no I/O.
class session_view {
public:
    virtual ~session_view() = default;

    /// Nothing may be handed over, published, deleted or checkpointed under the session `of` at or after this
    /// moment. The past once that session is over: its successor's deadline must not revive leases whose end
    /// the loop has not been told yet.
    [[nodiscard]] virtual mono_time deadline(const incarnation& of) const = 0;

    /// Tells the other workers soon (with a heartbeat at once) that shard rows have changed.
    virtual void note_change() = 0;

    /// Says that the loop turned at `now`. The keeper stops renewing when it has not for a lease time.
    virtual void loop_turned(mono_time now) = 0;
};

class session_listener {
public:
    virtual ~session_listener() = default;
    virtual void session_started(const incarnation& mine) = 0;

    /// Everything held under it is lost. A new session follows by itself unless `why` is `worker_id_taken`.
    virtual void session_ended(const incarnation& mine, const error& why) = 0;
};

class session_driver final : public session_view {
public:
    /// All references must outlive the driver. `listener` and `gone` are called on the keeper's host.
    session_driver(
        host& keeper,
        lease_store& store,
        session_options options,
        process_identity self,
        lapse_observer::process_gone gone,
        session_listener& listener
    );
    ~session_driver() override;

    void start();

    /// Deregisters; completes with the first outcome that is certain, or with an error when the row could not
    /// be deleted (the session then lapses).
    void stop(completion<void> done);

    [[nodiscard]] mono_time deadline(const incarnation& of) const override;
    void note_change() override;
    void loop_turned(mono_time now) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
