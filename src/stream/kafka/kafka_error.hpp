/// What librdkafka says of a record or a client, in the words of the relay.
///
/// Only a broker's verdict on a record or its topic becomes `refused_record` or `refused_topic`; absent
/// brokers, time-outs, throttling and whatever is not known are `unavailable` or `throttled` and never count
/// against a row. Pure.
#pragma once

#include "handles.hpp"
#include "port/outbox_source.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <string_view>

namespace millrace::kafka {

/// Why a record of `topic` was not published; in doubt when it may have been.
[[nodiscard]] error record_error(
    rd_kafka_resp_err_t code, rd_kafka_msg_status_t status, std::string_view topic
);

/// The same for a record that a broker judged. One without a timestamp of its own bears the time of this
/// machine: that a broker refuses it is a matter of clocks, which passes and is not the event's.
[[nodiscard]] error record_error(
    rd_kafka_resp_err_t code, rd_kafka_msg_status_t status, const outbox_row& row
);

/// Why the cluster or a topic can not be looked at. `reason` is librdkafka's sentence, may be empty.
[[nodiscard]] error client_error(rd_kafka_resp_err_t code, std::string_view reason, std::string_view servers);

/// Keeps what is wrong (a password, a certificate) in sight for a minute: librdkafka says it twice a minute
/// at most, and what follows from it ("transport failure", "all brokers down") again and again.
class recent_cause {
public:
    /// The error to show for `why`.
    [[nodiscard]] const error& behind(error why, mono_time now);
    void forget() noexcept { until_ = {}; }

private:
    error shown_;
    mono_time until_{};
};

[[nodiscard]] error purged_error();
[[nodiscard]] error too_large_for_client(std::string_view topic, std::size_t bytes, std::size_t limit);

/// A refusal that is about the size of the batch.
[[nodiscard]] bool is_about_size(rd_kafka_resp_err_t code) noexcept;

/// A refusal that is about the topic, whatever the record.
[[nodiscard]] bool is_about_topic(rd_kafka_resp_err_t code) noexcept;

}  // namespace millrace::kafka
