/// What a failure says about a row: nothing, suspicion, or guilt.
///
/// Only a broker's verdict on a row that stood alone can end in the dead letters; an absent broker, a
/// time-out or throttling never counts. Pure functions.
#pragma once

#include "port/event_sink.hpp"
#include "relay/options.hpp"

#include <millrace/error.hpp>

#include <cstdint>
#include <string_view>

namespace millrace {

enum class blame : std::uint8_t {
    none,     ///< Try again: not the row's fault, in doubt, or not tried at all.
    suspect,  ///< It may be this row: it is sent alone until it is taken or judged.
    mends,    ///< A verdict, but the sink may change its mind: wait, and count the attempt.
    guilty,   ///< A verdict that stands.
};

/// `alone`: the request held only this row, or the sink names the row itself.
[[nodiscard]] blame judge(const error& why, bool alone) noexcept;

/// Whether a row that was refused `attempts` times by verdicts that may mend is given up.
[[nodiscard]] inline bool exhausted(std::uint32_t attempts, const relay_options& options) noexcept {
    return options.max_attempts > 0 && attempts >= options.max_attempts;
}

/// Why the row was not published; null when it was.
[[nodiscard]] const error* failure_of(const result<publish_outcome>& outcome, row_id id) noexcept;

/// Short and stable, for the dead letters.
[[nodiscard]] std::string_view bury_reason(const error& why) noexcept;

}  // namespace millrace
