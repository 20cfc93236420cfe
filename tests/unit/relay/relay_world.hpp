/// A relay driver between a fake outbox and a fake sink, with oracles for the promises of a relay.
#pragma once

#include "fake_outbox.hpp"
#include "fake_sink.hpp"
#include "relay_driver.hpp"
#include "unit/remembered_log.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::sim {

struct relay_settings {
    std::uint64_t seed{1};
    relay_options relay{};
    sink_options sink{};

    /// What the driver publishes to instead; it hands on to the fake.
    std::function<std::unique_ptr<event_sink>(host&, event_sink&)> around{};
};

class relay_world {
public:
    explicit relay_world(const relay_settings& s = {}) : random(s.seed), sink_plan_(s.sink) {
        for (const auto* topic : {"t", "u"})
            service.topic(topic, world, random, {});
        service.observe([this](const outbox_row& row, epoch) { appended(row); });
        table.observe([this](outbox_table::change what, const stored_row& row) { changed(what, row); });
        source = std::make_unique<fake_outbox>(table, world, host, random, outbox_faults);
        sink = std::make_unique<fake_sink>(service, world, host, random, sink_faults, sink_plan_);
        if (s.around) outer = s.around(host, *sink);
        auto& target = outer ? *outer : static_cast<event_sink&>(*sink);
        driver = std::make_unique<relay_driver>(host, *source, target, s.relay, [this] { return may_act; });
        driver->on_stopped([this](const error& why) { stopped = why; });
    }

    row_id put(const std::string& key, const std::string& value = "v", const std::string& topic = "t") {
        return table.put({.topic = topic, .key = key, .value = value});
    }

    /// Ids in the order in which they were first appended.
    std::vector<std::int64_t> order_of(const std::string& key, const std::string& topic = "t") const {
        std::vector<std::int64_t> ids;
        for (const auto id : first_appends) {
            const auto lane = lanes.find(id);
            if (lane != lanes.end() && lane->second == lane_key{topic, key, {}}) ids.push_back(id.value());
        }
        return ids;
    }

    bool run_until_empty(nanoseconds limit = 60s) {
        const auto end = world.now() + limit;
        while (world.now() < end && !(table.rows().empty() && driver->empty()))
            world.run_for(5ms);
        return table.rows().empty() && driver->empty();
    }

    scheduler world;
    rng random;
    faults outbox_faults{.latency_min = 100us, .latency_max = 1ms};
    faults sink_faults{.latency_min = 100us, .latency_max = 2ms};
    test::remembered_log log;
    sim_host host{world, random, {}, &log};
    outbox_table table{world, true};
    sink_service service;
    std::unique_ptr<fake_outbox> source;
    std::unique_ptr<fake_sink> sink;
    std::unique_ptr<event_sink> outer;
    std::unique_ptr<relay_driver> driver;
    bool may_act{true};
    std::optional<error> stopped;

    std::map<row_id, int> appends;
    std::vector<row_id> first_appends;
    std::map<row_id, lane_key> lanes;
    std::vector<std::string> broken;  ///< Promises.
    std::uint64_t duplicates{0};

    /// What the sink has appended; the service tells it, unless a test observes that itself.
    void appended(const outbox_row& row) {
        if (appends[row.id]++ > 0) {
            ++duplicates;
            return;
        }
        first_appends.push_back(row.id);
        if (!row.key) return;
        auto& open = unsettled_[lanes[row.id]];
        if (!open.empty() && *open.begin() < row.id)
            broken.push_back(
                "row " + std::to_string(row.id.value()) + " was published before row " +
                std::to_string(open.begin()->value()) + " of its lane"
            );
        open.erase(row.id);
    }

private:
    void changed(outbox_table::change what, const stored_row& row) {
        const auto lane = lane_of(row);
        switch (what) {
            case outbox_table::change::committed:
            case outbox_table::change::replayed:
                lanes[row.id] = lane;
                if (appends[row.id] == 0) unsettled_[lane].insert(row.id);
                break;
            case outbox_table::change::deleted:
                if (appends[row.id] == 0)
                    broken.push_back("row " + std::to_string(row.id.value()) + " was deleted unpublished");
                break;
            case outbox_table::change::buried:
            case outbox_table::change::dropped:
                unsettled_[lane].erase(row.id);
                break;
        }
    }

    sink_options sink_plan_;
    std::map<lane_key, std::set<row_id>> unsettled_;
};

inline error refusal(errc code = errc::refused_record, retry_advice retry = retry_advice::never) {
    return {code, retry, false, "simulated refusal"};
}

/// The verdict of a sink that refuses the rows with this value.
inline auto refuses(std::string value, error why = refusal()) {
    return [value = std::move(value), why](const outbox_row& row) -> std::optional<error> {
        if (row.value == value) return why;
        return std::nullopt;
    };
}

}  // namespace millrace::sim
