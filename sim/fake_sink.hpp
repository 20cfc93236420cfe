/// An in-memory sink with an idempotent, gapless main channel and a probe channel, over fake streams.
///
/// `sink_service` is the broker, shared by the world; each relay has a `fake_sink` of its own. What a
/// `fake_sink` was given waits in its host until it is sent: after a pause it may still go out.
#pragma once

#include "fake_stream.hpp"
#include "link.hpp"
#include "port/event_sink.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace millrace::sim {

/// The broker: one stream a topic, and its verdict on each row.
class sink_service {
public:
    /// Sees every row that was appended.
    using observer = std::function<void(const outbox_row& row, epoch under)>;

    fake_stream& topic(const std::string& name, scheduler& world, rng& random, stream_options options);

    /// Whether the broker refuses the row now; unset, it takes everything. Called once for each try.
    std::function<std::optional<error>(const outbox_row& row)> verdict;

    [[nodiscard]] std::optional<error> judge(const outbox_row& row) const;
    void append(const outbox_row& row, epoch under);
    void observe(observer what) { observer_ = std::move(what); }

private:
    std::map<std::string, std::unique_ptr<fake_stream>, std::less<>> topics_;
    observer observer_;
};

struct sink_options {
    event_sink::capacity capacity;

    /// A refusal names rows beside the guilty one: the broker takes or refuses so many rows at a time.
    std::size_t blamed_rows{1};

    nanoseconds client_delay_max{2ms};  ///< What was given waits so long in the client.
    std::uint32_t suspected{0};         ///< Per cent of rows that arouse suspicion, guilty or not.
};

class fake_sink final : public event_sink {
public:
    fake_sink(
        sink_service& service,
        scheduler& world,
        host& client,
        rng& random,
        const faults& plan,
        sink_options options = {}
    );
    ~fake_sink() override;

    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override;
    void reset_main(completion<void> done) override;
    [[nodiscard]] std::optional<error> suspect(const outbox_row& row) const override;
    [[nodiscard]] capacity limits() const override { return options_.capacity; }

    /// Requests by name: `publish`, `probe`, `reset_main`.
    void force(std::string_view request, fate what) { link_.force(request, what); }

private:
    struct parcel;
    struct pipe;

    void send(const std::shared_ptr<parcel>& what);
    static std::optional<result<publish_outcome>> land(
        sink_service& service, pipe& main, parcel& what, std::size_t together, bool coin
    );
    void give_up_at(const std::shared_ptr<parcel>& what, world_time when);
    void answer(const std::shared_ptr<parcel>& what, result<publish_outcome> outcome, world_time when);
    void complete_resets();

    sink_service& service_;
    host& client_;
    link link_;
    sink_options options_;
    std::shared_ptr<pipe> main_;
    std::vector<completion<void>> resets_;
    lifetime alive_;
};

}  // namespace millrace::sim
