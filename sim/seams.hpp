/// Where a test may put something between a driver and what it talks to. Empty functions put nothing there.
#pragma once

#include "port/event_sink.hpp"
#include "port/lease_store.hpp"
#include "port/outbox_source.hpp"
#include "port/record_source.hpp"
#include "session_driver.hpp"

#include <millrace/handler.hpp>

#include <functional>
#include <memory>

namespace millrace::sim {

template <class Port>
using seam = std::function<std::unique_ptr<Port>(std::unique_ptr<Port>)>;

struct seams {
    seam<lease_store> keeper_store;
    seam<lease_store> loop_store;
    seam<record_source> source;
    seam<outbox_source> outbox;
    seam<event_sink> sink;
    seam<record_handler> handler;
    std::function<std::unique_ptr<session_view>(session_view&)> session;
};

template <class Port>
std::unique_ptr<Port> through(const seam<Port>& what, std::unique_ptr<Port> inner) {
    return what ? what(std::move(inner)) : std::move(inner);
}

}  // namespace millrace::sim
