#include "kafka_error.hpp"

#include "relay/poison.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using kafka::client_error;
using std::chrono::seconds;

TEST(RecentCause, AWrongPasswordStaysInSightForAMinuteThoughTheConnectionsAreLostAfterIt) {
    const auto password = client_error(RD_KAFKA_RESP_ERR__AUTHENTICATION, "invalid password", "a:1");
    const auto lost = client_error(RD_KAFKA_RESP_ERR__TRANSPORT, "", "a:1");
    const auto down = client_error(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 down", "a:1");
    kafka::recent_cause cause;
    const mono_time start{seconds{100}};
    EXPECT_EQ(cause.behind(lost, start), lost);
    EXPECT_EQ(cause.behind(password, start), password);
    EXPECT_EQ(cause.behind(down, start + seconds{59}), password);
    EXPECT_EQ(cause.behind(lost, start + seconds{60}), lost);
}

TEST(RecentCause, ACertificateReplacesThePasswordAndAnAnswerEndsBoth) {
    const auto password = client_error(RD_KAFKA_RESP_ERR__AUTHENTICATION, "invalid password", "a:1");
    const auto certificate = client_error(RD_KAFKA_RESP_ERR__SSL, "certificate verify failed", "a:1");
    const auto lost = client_error(RD_KAFKA_RESP_ERR__TRANSPORT, "", "a:1");
    kafka::recent_cause cause;
    const mono_time start{seconds{100}};
    EXPECT_EQ(cause.behind(password, start), password);
    EXPECT_EQ(cause.behind(certificate, start), certificate);
    EXPECT_EQ(cause.behind(lost, start), certificate);
    cause.forget();
    EXPECT_EQ(cause.behind(lost, start), lost);
}

TEST(KafkaError, ATimeThatIsNotTheEventsOwnIsAMatterOfClocksAndNoVerdict) {
    const auto says = [](const outbox_row& row) {
        return kafka::record_error(
            RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, RD_KAFKA_MSG_STATUS_NOT_PERSISTED, row
        );
    };
    outbox_row row;
    row.topic = "orders";
    const auto clocks = says(row);
    EXPECT_EQ(judge(clocks, true), blame::none);
    EXPECT_EQ(clocks.retry, retry_advice::after_delay);
    EXPECT_NE(clocks.detail.find("clock of this machine or of the broker"), std::string::npos);
    row.timestamp = wall_time{};
    EXPECT_EQ(judge(says(row), true), blame::guilty);
}

}  // namespace
}  // namespace millrace::test
