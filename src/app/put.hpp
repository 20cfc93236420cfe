/// What `outbox put` and `stream put` have in common: one event from flags, or many as NDJSON from standard
/// input, in batches of which each is written as a whole or not at all.
#pragma once

#include "faults.hpp"
#include "option.hpp"
#include "settings.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>

#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::app {

/// Adds the options of an event and of batches. Without `with_topic` the topic is fixed, and so is no option.
void add_put_options(std::vector<option_spec>& options, bool with_topic);

/// Adds what is wrong with the flags of one event.
void check_put(const settings& values, faults& found);

/// Writes one batch in one transaction.
using write_batch = std::function<result<void>(std::span<const event>)>;

/// Says of one event alone why it cannot be written, so that its line can be named. May be empty.
using check_event = std::function<result<void>(const event&)>;

/// Reads events and writes them. `topic` is the only one allowed; empty when each event names its own.
/// Prints how many were written.
[[nodiscard]] exit_status run_put(
    const settings& values, std::string_view topic, const write_batch& write, const check_event& check = {}
);

}  // namespace millrace::app
