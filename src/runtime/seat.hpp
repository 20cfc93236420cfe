/// One outbox's seat: chosen, its epoch raised where the choice was made elsewhere, led, given back.
///
/// Lives on the loop.
#pragma once

#include "alarm.hpp"
#include "epoch_raiser.hpp"
#include "leadership.hpp"
#include "retry/backoff.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace millrace {

class seat {
public:
    /// `raise_in`: the store of the outbox's own lease row; null where being chosen comes with an epoch.
    seat(host& loop, seat_holder& holder, std::unique_ptr<lease_store> raise_in);

    /// `by_lease` is the epoch that comes with the choice.
    void chosen(epoch by_lease);

    /// The seat is to go to another: `done` once nothing is under way any more.
    void retire(std::function<void()> done);
    void lost(const error& why);

    /// The outbox holds another epoch. `again` is called after a pause, which grows while this goes on; null:
    /// the epoch is raised again.
    void refused(std::function<void()> again);

    [[nodiscard]] bool leads() const noexcept { return state_ == state::led || state_ == state::retiring; }
    [[nodiscard]] const epoch_raiser* raiser() const noexcept { return raiser_.get(); }

private:
    enum class state : std::uint8_t { free, raising, led, retiring, refused };

    void raise();
    void lead(epoch mine);

    host& loop_;
    seat_holder& holder_;
    std::unique_ptr<lease_store> store_;
    std::unique_ptr<epoch_raiser> raiser_;
    state state_{state::free};
    epoch by_lease_;
    mono_time led_since_{};
    backoff wait_;
    alarm again_;
    lifetime turn_;
};

}  // namespace millrace
