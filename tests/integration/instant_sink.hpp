/// A sink that takes everything at once, except what it is told to refuse, and remembers it in order.
#pragma once

#include "port/event_sink.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace::test {

class instant_sink final : public event_sink {
public:
    explicit instant_sink(host& home) : home_(home) {}

    struct taken {
        std::int64_t id;
        std::string topic;
        std::string key;
        std::string value;
        std::optional<std::int32_t> partition;
        std::optional<wall_time> timestamp;
        std::vector<std::pair<std::string, std::optional<std::string>>> headers;
    };

    void publish(channel where, std::vector<outgoing_row> rows, epoch, completion<publish_outcome> done)
        override {
        publish_outcome outcome;
        for (const auto& row : rows)
            take(where, *row.row, outcome);
        home_.post([done = std::move(done), outcome = std::move(outcome)]() mutable {
            done(std::move(outcome));
        });
    }
    void reset_main(completion<void> done) override {
        main_stopped_ = false;
        home_.post([done = std::move(done)] { done({}); });
    }
    [[nodiscard]] std::optional<error> suspect(const outbox_row&) const override { return std::nullopt; }
    [[nodiscard]] capacity limits() const override { return {}; }

    [[nodiscard]] std::vector<std::int64_t> ids() const {
        std::vector<std::int64_t> all;
        for (const auto& t : log)
            all.push_back(t.id);
        return all;
    }

    std::vector<taken> log;
    std::optional<std::string> refuses_value;  ///< With `refused_record`, while it stands.
    bool keeps_log{true};
    std::uint64_t count{0};

private:
    void take(channel where, const outbox_row& row, publish_outcome& outcome) {
        if (where == channel::main && main_stopped_) {
            outcome.failures.push_back(
                {row.id, error{errc::purged, retry_advice::now, false, "behind a refusal"}, false}
            );
            return;
        }
        if (refuses_value && row.value == *refuses_value) {
            main_stopped_ = main_stopped_ || where == channel::main;
            outcome.failures.push_back(
                {row.id, error{errc::refused_record, retry_advice::never, false, "refused"}, false}
            );
            return;
        }
        ++count;
        if (!keeps_log) return;
        taken t{
            row.id.value(),
            std::string(row.topic),
            std::string(row.key.value_or("")),
            std::string(row.value.value_or("")),
            row.partition,
            row.timestamp,
            {}};
        for (const auto& h : row.headers) {
            t.headers.emplace_back(
                std::string(h.name),
                h.value ? std::optional<std::string>(std::string(*h.value)) : std::nullopt
            );
        }
        log.push_back(std::move(t));
    }

    host& home_;
    bool main_stopped_{false};
};

}  // namespace millrace::test
