/// What a relay asks of the sink without I/O; as in `event_sink`.
#pragma once

#include "port/event_sink.hpp"

#include <functional>
#include <optional>

namespace millrace {

struct sink_view {
    std::function<std::optional<error>(const outbox_row&)> suspect;
    std::function<event_sink::capacity()> limits;
    std::function<bool(const outbox_row&)> awaits = [](const outbox_row&) { return false; };
};

}  // namespace millrace
