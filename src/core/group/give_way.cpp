#include "group/give_way.hpp"

#include <algorithm>

namespace millrace {

namespace {

bool out_of_reach(
    mono_time now, std::span<const seat_reach> led, reach seat_reach::*what, nanoseconds yield_after
) {
    const bool silent = std::any_of(led.begin(), led.end(), [&](const seat_reach& seat) {
        const auto& since = (seat.*what).silent_since;
        return since && now - *since >= yield_after;
    });
    return silent && std::none_of(led.begin(), led.end(), [&](const seat_reach& seat) {
               const auto& at = (seat.*what).answered;
               return at && now - *at < yield_after;
           });
}

}  // namespace

bool gives_way(mono_time now, std::span<const seat_reach> led, bool others_wait, nanoseconds yield_after) {
    return others_wait && (out_of_reach(now, led, &seat_reach::sink, yield_after) ||
                           out_of_reach(now, led, &seat_reach::outbox, yield_after));
}

}  // namespace millrace
