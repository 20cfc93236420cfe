/// Keeps the session alive on a thread of its own, so that a slow handler or a big decode never costs a
/// lease.
///
/// The thread has its own loop and its own connection to the state. What it reports is posted to the main
/// loop; what the main loop asks (`session_view`) is answered without waiting for it. Everything but
/// `session_view` belongs to the main loop's thread.
#pragma once

#include "event_loop.hpp"
#include "port/lease_store.hpp"
#include "session_driver.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <memory>
#include <thread>

namespace millrace {

class keeper final : public session_view {
public:
    /// Makes a store for the given host.
    using store_opener = std::function<result<std::unique_ptr<lease_store>>(host&)>;

    /// `listener` is called on `loop` for as long as this object lives. References must outlive the keeper.
    keeper(host& loop, session_options options, process_identity self, session_listener& listener);

    /// Ends the thread at once; without `stop` before, the session lapses.
    ~keeper() override;
    keeper(const keeper&) = delete;
    keeper& operator=(const keeper&) = delete;

    /// Opens the keeper's own store and begins to register. Once.
    [[nodiscard]] result<void> start(const store_opener& open);

    /// Deregisters; completes on the main loop.
    void stop(completion<void> done);

    [[nodiscard]] mono_time deadline(const incarnation& of) const override;
    void note_change() override;
    void loop_turned(mono_time now) override;

private:
    class reports;

    host& loop_;
    session_options options_;
    process_identity self_;
    lifetime alive_;
    event_loop home_;
    std::unique_ptr<reports> reports_;
    std::unique_ptr<lease_store> store_;
    std::unique_ptr<session_driver> session_;  // set once, before the thread begins
    std::thread thread_;
};

}  // namespace millrace
