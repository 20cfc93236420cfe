/// What every `event_sink` must do, and what those must that keep all of an event. An implementation joins by
/// a `sink_world` and an INSTANTIATE line a suite.
#pragma once

#include "port/event_sink.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::test {

/// A sink with the topics "orders" and "payments", each one ordered log, and a look at what arrived.
class sink_world {
public:
    virtual ~sink_world() = default;

    [[nodiscard]] virtual event_sink& sink() = 0;

    /// Turns the loop until `condition` holds; false when it does not within some seconds.
    virtual bool run_until(const std::function<bool()>& condition) = 0;

    virtual void create_topic(const std::string& name) = 0;

    /// A value that the sink refuses.
    [[nodiscard]] virtual std::string poison() const = 0;

    /// What was published, in order; the topic of each event is left empty.
    [[nodiscard]] virtual std::vector<event> published(const std::string& topic) = 0;

    /// Whether rows of other lanes may still be published after a refusal.
    [[nodiscard]] virtual bool goes_on_with_other_lanes() const { return false; }
};

using make_sink_world = std::function<std::unique_ptr<sink_world>()>;

/// What became of one request.
struct sent {
    std::optional<result<publish_outcome>> outcome;
    int completions{0};
};

class EventSinkContract : public testing::TestWithParam<make_sink_world> {
protected:
    /// Makes a batch of rows; ids go on from one call to the next.
    std::vector<outgoing_row> rows(const std::vector<event>& events);
    static event order(const std::string& value) { return {.topic = "orders", .key = "k", .value = value}; }

    std::shared_ptr<sent> publish(channel where, const std::vector<event>& events);
    std::shared_ptr<sent> reset();
    void wait(const std::shared_ptr<sent>& request);

    /// Publishes and waits: the failures, by the place of the row in the request.
    std::vector<std::pair<std::size_t, errc>> outcome(channel where, const std::vector<event>& events);
    static std::vector<std::pair<std::size_t, errc>> failures(const sent& request, row_id first);

    /// The values in a topic, each followed by a space.
    std::string values(const std::string& topic = "orders");

    std::unique_ptr<sink_world> world{GetParam()()};
    event_sink& sink{world->sink()};
    row_id next_row{1};
};

/// Headers, absent keys and values, keys that are empty or not UTF-8.
class FullEventSinkContract : public EventSinkContract {};

}  // namespace millrace::test
