/// How a relay comes to lead outboxes: the seam between who is chosen and what is done then.
///
/// A seat is one outbox under one leadership. Everything lives on the loop; listeners may be called from
/// within a call.
#pragma once

#include "port/host.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace millrace {

/// What leads an outbox once it may.
class seat_holder {
public:
    virtual ~seat_holder() = default;

    virtual void lead(epoch mine) = 0;

    /// Finish what is under way, then call `done`; not after `lost`.
    virtual void give_back(std::function<void()> done) = 0;

    /// Stop at once.
    virtual void lost(const error& why) = 0;
};

class leadership {
public:
    virtual ~leadership() = default;

    [[nodiscard]] virtual result<void> start() = 0;

    /// Gives back every seat, then leaves.
    virtual void stop(completion<void> done) = 0;

    /// The seat is led, and before its deadline.
    [[nodiscard]] virtual bool may_act(std::size_t seat) const = 0;

    /// The outbox holds another epoch than this leader's: looks again whether it leads, and how. The holder
    /// has stopped; `lead` or `lost` follows.
    virtual void refused(std::size_t seat) = 0;

    /// Since when the store of the outbox's epoch has not answered while it is to be raised.
    [[nodiscard]] virtual std::optional<mono_time> raising_since(std::size_t seat) const = 0;

    /// Why the seat cannot be had, or may be lost: what that store says, or who decides about the lead.
    [[nodiscard]] virtual std::optional<error> trouble(std::size_t seat) const = 0;

    /// Whether another leads the seat, as far as is known.
    [[nodiscard]] virtual bool behind_another(std::size_t seat) const = 0;

    /// Who that is, for people; not called when it cannot be found out.
    virtual void name_other(std::size_t seat, std::function<void(const std::string&)> done) = 0;

    /// Takes part: it leads, or would take over.
    [[nodiscard]] virtual bool joined() const = 0;
    [[nodiscard]] virtual bool others_wait() const = 0;

    /// Gives back every seat and leaves the others time to take them.
    virtual void give_way() = 0;
};

}  // namespace millrace
