/// The probe channel: each row in a request of its own, so that a refusal is a verdict on that row.
///
/// A topic in trouble is looked up again before each row. Refusals and successes teach what a topic takes.
/// Belongs to the sink's thread.
#pragma once

#include "sink_parts.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace millrace::kafka {

class probe_line {
public:
    explicit probe_line(sink_parts& parts) : parts_(parts) {}

    void publish(std::unique_ptr<request> what, mono_time now);
    void on_topic(topic_entry& which, mono_time now);
    void serve(mono_time now);

    /// As `main_line::is_silent`.
    [[nodiscard]] bool is_silent(const topic_entry& which, mono_time now) const;
    void close();

    /// Gives up what is not published yet, and completes when nothing of it can be published any more.
    void purge(completion<void> done);

    [[nodiscard]] bool waits() const noexcept { return !looking_.empty() || worn_ || !purges_.empty(); }
    [[nodiscard]] std::size_t handed_over() const noexcept { return handed_over_.size(); }

private:
    struct probed_row {
        std::uint32_t request;
        std::uint32_t place;
    };

    void send(probed_row which, topic_entry& topic, mono_time now);
    void refuse(probed_row which, topic_entry& topic, rd_kafka_resp_err_t code, rd_kafka_msg_status_t status);
    void report(const rd_kafka_message_t& message);
    void retire();
    void finish_purges();
    void teach(topic_entry& topic, const topic_facts& before);

    sink_parts& parts_;
    std::unique_ptr<producer> producer_;
    std::vector<probed_row> looking_;  ///< Until their topic was looked up.
    std::vector<probed_row> handed_over_;
    bool worn_{false};  ///< The producer knows a topic as denied or absent until it looks again in minutes.
    std::vector<completion<void>> purges_;
    mono_time purge_limit_{};
    mono_time now_{};
};

}  // namespace millrace::kafka
