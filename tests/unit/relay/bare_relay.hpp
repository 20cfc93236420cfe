/// A relay's decisions alone: what it does at each event, and when it wants to be woken.
#pragma once

#include "relay/relay.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::test {

struct bare_relay {
    explicit bare_relay(const relay_options& options, bool signalled = false)
        : machine(
              options,
              {[this](const outbox_row& row) { return suspect ? suspect(row) : std::nullopt; },
               [this] { return limits; }},
              signalled
          ) {}

    void start(outbox_start from) {
        step(relay_event::started{epoch{1}});
        step(relay_event::start_loaded{number_of<relay_action::load_start>(), std::move(from)});
    }
    void step(relay_event::any what) {
        actions = machine.step(now, 1, std::move(what));
        for (const auto& action : actions)
            if (const auto* wake = std::get_if<relay_action::wake_at>(&action)) wake_at = wake->when;
    }
    void wake() {
        now = std::max(now, wake_at);
        step(relay_event::timer{});
    }
    template <class Action>
    [[nodiscard]] const Action* find() const {
        for (const auto& action : actions)
            if (const auto* found = std::get_if<Action>(&action)) return found;
        return nullptr;
    }
    template <class Action>
    [[nodiscard]] std::uint64_t number_of() const {
        const auto* found = find<Action>();
        EXPECT_NE(found, nullptr);
        return found == nullptr ? 0 : found->number;
    }

    static fetch_reply page(std::int64_t first, std::int64_t count, bool more) {
        auto rows = std::make_shared<row_batch>();
        rows->reserve(static_cast<std::size_t>(count));
        for (auto i = first; i < first + count; ++i) {
            outbox_row row;
            row.id = row_id{i};
            row.topic = rows->store("t");
            rows->add(row);
        }
        return {.ahead = std::move(rows), .more = more, .table_identity = "a"};
    }

    event_sink::capacity limits;
    std::function<std::optional<error>(const outbox_row&)> suspect;
    relay_machine machine;
    mono_time now{std::chrono::hours{1}};
    mono_time wake_at{};
    std::vector<relay_action::any> actions;
};

}  // namespace millrace::test
