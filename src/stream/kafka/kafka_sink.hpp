/// Publishes to the topics of a Kafka cluster: `event_sink` on a thread of its own, over librdkafka.
///
/// Main is an idempotent, gapless producer; probe a second one that sends each row in a request of its own.
/// What is known of topics (limits, compaction, absence, denial) makes rows suspect before they can stop
/// main. No request ends for an absent broker: it waits. Lives on its host and is only touched there,
/// `counters` from any thread. Requests that wait when it ends are `cancelled`.
#pragma once

#include "kafka_url.hpp"
#include "port/event_sink.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {

struct kafka_sink_options {
    /// To a partition whose last acknowledgement is older, one row goes first. Must be far below the brokers'
    /// `producer.id.expiration.ms` (a day by default).
    nanoseconds idle_partition{std::chrono::minutes{1}};

    /// When set, each record gets the header `millrace-outbox` with "EPOCH ID", by which a consumer can
    /// drop what is older.
    std::optional<std::string> outbox;

    nanoseconds refresh_every{std::chrono::minutes{1}};  ///< Between two looks at the topics in use.
    nanoseconds settle_limit{std::chrono::seconds{2}};   ///< A reset waits so long for what is in flight.
    milliseconds look_limit{3'000};                      ///< Of one question about a topic.

    /// When a partition says nothing of its rows for so long, it is asked whether it has a leader and enough
    /// replicas; the rows of one that has not are taken back, so that others go on.
    nanoseconds silence{std::chrono::seconds{2}};

    std::size_t queued_rows_max{100'000};  ///< In librdkafka's queues; above the relay's client_window_rows.
    std::size_t queued_kbytes_max{256 << 10};

    std::size_t request_rows_max{1'000};
    std::size_t request_bytes_max{1 << 20};
    std::size_t requests_in_flight_max{256};

    [[nodiscard]] result<void> validate() const;
};

struct kafka_counters {
    bool connected{false};          ///< A broker answered since the last time all of them were down.
    std::uint64_t queued{0};        ///< Rows handed to librdkafka and not yet reported.
    std::uint64_t waiting{0};       ///< Rows held back: behind a first one, or until their topic is known.
    std::uint64_t acknowledged{0};  ///< Rows.
    std::uint64_t probed{0};        ///< Rows sent alone.
    std::uint64_t refused{0};       ///< Reports that a row was refused.
    std::uint64_t resets{0};        ///< Main producers that were given up.
    std::optional<error> trouble;   ///< Of the connection; none once a broker answers.
};

class kafka_sink final : public event_sink {
public:
    static constexpr std::string_view outbox_header = "millrace-outbox";

    /// Checks the properties; nothing is connected before the first request. The host must outlive the sink.
    [[nodiscard]] static result<std::unique_ptr<kafka_sink>> open(
        host& home, kafka_address cluster, kafka_sink_options options = {}
    );
    ~kafka_sink() override;

    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override;
    void reset_main(completion<void> done) override;
    void purge(completion<void> done) override;
    void wind_down() override;
    [[nodiscard]] std::optional<error> suspect(const outbox_row& row) const override;
    [[nodiscard]] std::optional<error> trouble() const override { return counters().trouble; }
    [[nodiscard]] capacity limits() const override;

    /// Whether a broker answers, and, unless `topic` is empty, has that topic.
    void look(completion<void> done, std::string topic = {});

    [[nodiscard]] kafka_counters counters() const;

private:
    struct impl;
    explicit kafka_sink(std::unique_ptr<impl> made);
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
