/// A group elsewhere that says which of its members leads.
///
/// Lives on the host that it was made for; listeners are called there.
#pragma once

#include "port/host.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <optional>

namespace millrace {

class group_leader_listener {
public:
    virtual ~group_leader_listener() = default;

    virtual void chosen() = 0;

    /// Another is to lead, or this member leaves: finish what is under way, then call `drained`.
    virtual void retire() = 0;

    /// No longer chosen; stop at once.
    virtual void lost(const error& why) = 0;
};

class group_leader {
public:
    virtual ~group_leader() = default;

    /// `invalid_config` when the settings cannot be used; everything else is waited for.
    [[nodiscard]] virtual result<void> start(group_leader_listener& listener) = 0;

    /// Leaves the group, after `retire` where this member leads.
    virtual void stop(completion<void> done) = 0;

    /// Answers `retire`.
    virtual void drained() = 0;

    /// Leaves the group for a while.
    virtual void give_way() = 0;

    /// Nothing may be done as the leader at or after it; the past when not chosen. Thread-safe.
    [[nodiscard]] virtual mono_time deadline() const = 0;

    /// Whether this member is in the group, chosen or not. Thread-safe.
    [[nodiscard]] virtual bool joined() const = 0;

    /// Whether the group has other members, as far as is known. Thread-safe.
    [[nodiscard]] virtual bool others_wait() const = 0;

    /// Why this member cannot lead or may not for long; empty while all is well. Thread-safe.
    [[nodiscard]] virtual std::optional<error> trouble() const = 0;
};

}  // namespace millrace
