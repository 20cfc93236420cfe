/// The main channel on librdkafka: rows in order through one idempotent, gapless producer.
///
/// A row that can be refused here stops the channel softly: what was taken before it goes on. A report that a
/// row failed ends the producer: what it still holds is purged, a new one is made, and everything waits for a
/// reset. Belongs to the sink's thread.
#pragma once

#include "sink_parts.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace millrace::kafka {

class main_line {
public:
    explicit main_line(sink_parts& parts) : parts_(parts) {}

    void publish(std::unique_ptr<request> what);
    void reset(completion<void> done);

    /// What was learned of a topic may let rows pass, or must end the producer.
    void on_topic(topic_entry& which, const topic_facts& before);

    /// A partition of it holds rows and says nothing of them.
    [[nodiscard]] bool is_silent(const topic_entry& which, mono_time now) const;

    /// Takes reports and goes on as far as possible.
    void serve(mono_time now);

    /// When `serve` is to be called without an event.
    [[nodiscard]] mono_time due() const noexcept;

    [[nodiscard]] std::size_t handed_over() const noexcept { return handed_over_; }
    [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }

    /// Gives the producer up at once; what is not published is in doubt or cancelled.
    void close(mono_time now);

private:
    enum class mode : std::uint8_t {
        open,
        refused,  ///< A row was refused here: the rest waits for a reset.
        ending,   ///< The producer is being emptied.
        broken,   ///< A new producer is there: a reset is awaited.
    };
    enum class step : std::uint8_t { placed, blocked, refused };

    void poll();
    void on_reports(rd_kafka_event_t* event);
    void report(const rd_kafka_message_t& message, bool shared);
    void learn(
        rd_kafka_resp_err_t code,
        topic_entry& topic,
        std::span<const rd_kafka_message_t* const> some,
        std::size_t count
    );
    void release(topic_entry& topic, std::int32_t partition);

    void admit();
    [[nodiscard]] step place(std::uint32_t number, request& r);
    [[nodiscard]] std::optional<row_failure> refusal(const request& r, const topic_entry& topic) const;
    [[nodiscard]] rd_kafka_resp_err_t hand_over(std::uint32_t number, std::uint32_t place);
    [[nodiscard]] partition_gate::limits limits_of(const topic_entry& topic) const;
    void fail_to_hand_over(std::uint32_t number, std::uint32_t place, rd_kafka_resp_err_t code);

    void take_back(topic_entry& which);
    void purge_waiting();
    void purge_waiting_requests();
    void settle_unreported();
    void end(const std::optional<error>& cause);
    void empty();
    void renew();
    void finish_resets();
    [[nodiscard]] bool ensure_producer();
    [[nodiscard]] error unpublished() const;

    sink_parts& parts_;
    std::unique_ptr<producer> producer_;
    mode mode_{mode::open};
    mono_time now_{};
    std::deque<std::uint32_t> inbox_;  ///< Requests with rows that are not yet placed.
    std::size_t handed_over_{0};
    std::size_t waiting_{0};
    std::vector<completion<void>> resets_;

    // While ending.
    std::vector<std::pair<topic_entry*, std::int32_t>> failed_;  ///< Partitions that take nothing more.
    std::vector<std::pair<topic_entry*, std::int32_t>> left_;    ///< Partitions that are not waited for.
    std::optional<error> cause_;  ///< Of the producer's end, where no row was refused.
    mono_time innocents_until_{};
    mono_time purge_again_{};
    bool gives_up_{false};  ///< What is in flight is not waited for any more.
};

}  // namespace millrace::kafka
