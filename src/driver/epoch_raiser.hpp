/// Raises the epoch of an outbox's lease row for a leader that was chosen elsewhere.
///
/// Lives on the loop.
#pragma once

#include "alarm.hpp"
#include "group/epoch_raise.hpp"
#include "paced_log.hpp"
#include "port/host.hpp"
#include "port/lease_store.hpp"
#include "relay/silence.hpp"

#include <millrace/names.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace millrace {

class epoch_raiser {
public:
    /// `owner` stands in the row for people. References must outlive the raiser.
    epoch_raiser(host& loop, lease_store& store, shard_id shard, incarnation owner);

    /// Calls `done` once, with the new epoch, however long it takes. A raise under way is dropped.
    void raise(std::function<void(epoch)> done);

    /// What is under way may still take effect; its `done` is not called.
    void cancel();

    /// Of the store, while it is asked.
    [[nodiscard]] const silence& heard() const noexcept { return heard_; }

    /// The latest trouble of a raise under way.
    [[nodiscard]] const std::optional<error>& trouble() const noexcept { return trouble_; }

private:
    void step(const epoch_raise::event& what);
    void carry_out(const epoch_raise::action& what);
    template <class T>
    void hear(const result<T>& outcome);

    host& loop_;
    lease_store& store_;
    shard_id shard_;
    incarnation owner_;
    alarm timer_;
    paced_log log_;
    silence heard_;
    std::optional<error> trouble_;
    epoch highest_;
    std::unique_ptr<epoch_raise> machine_;
    std::function<void(epoch)> done_;
    lifetime alive_;
};

}  // namespace millrace
