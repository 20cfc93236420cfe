// Many requests on one connection of HTTP/2 that is slow, or whose packets go nowhere.
#include "client.hpp"
#include "curl_http.hpp"
#include "integration/aws_outcome.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using clock = std::chrono::steady_clock;

/// kinesis-local by TLS behind a proxy, with one connection that has served a request.
class AwsHttp2 : public testing::Test {
protected:
    curl_http& http() {
        if (!http_) {
            http_ = std::make_unique<curl_http>(options);
            EXPECT_TRUE(ask(health()));
            EXPECT_EQ(proxy.accepted(), 1U);
        }
        return *http_;
    }
    [[nodiscard]] std::string url() const { return "https://localhost:" + std::to_string(proxy.port()); }
    [[nodiscard]] http_request health() const { return {.url = url() + "/healthcheck", .timeout = 10s}; }
    [[nodiscard]] http_request post() const {
        return {.method = "POST", .url = url(), .body = "{}", .timeout = 10s};
    }
    result<http_reply> ask(http_request what) {
        test::outcomes<result<http_reply>> one;
        http_->send(std::move(what), one.callback());
        return one.next();
    }

    const support::shared_services& services = support::services();
    support::fault_proxy proxy{support::port_of(services.kinesis_tls_endpoint)};
    curl_http_options options{.stall_timeout = 1s, .ca_file = services.kinesis_ca.string()};
    std::unique_ptr<curl_http> http_;
};

TEST_F(AwsHttp2, WaitsForAServiceThatIsSlowerThanTheStallTimeoutWhileItsConnectionIsAlive) {
    http();
    proxy.trickle(30);  // at most 1,500 B/s
    test::outcomes<result<http_reply>> all;
    const auto began = clock::now();
    for (int i = 0; i < 30; ++i)
        http().send(post(), all.callback());
    for (const auto& came : all.take(30))
        EXPECT_TRUE(came) << came.error().detail;
    EXPECT_GT(clock::now() - began, 2s) << "else it shows nothing";
    EXPECT_EQ(proxy.accepted(), 1U);
}

TEST_F(AwsHttp2, LeavesAConnectionWhosePacketsAreDroppedForAFreshOne) {
    http();
    proxy.strand();
    test::outcomes<result<http_reply>> all;
    const auto began = clock::now();
    const auto under_way = options.connections_max;
    for (std::size_t i = 0; i < under_way + 8; ++i)
        http().send(post(), all.callback());
    std::size_t lost = 0;
    for (const auto& came : all.take(under_way + 8)) {
        if (came) continue;
        ++lost;
        EXPECT_EQ(came.error().code, errc::unavailable);
        EXPECT_TRUE(came.error().in_doubt);
        EXPECT_THAT(came.error().detail, HasSubstr("no byte moved"));
    }
    EXPECT_EQ(lost, under_way) << "those behind them went elsewhere";
    EXPECT_LT(clock::now() - began, 8s);
    for (int i = 0; i < 5; ++i)
        EXPECT_TRUE(ask(health()));
    EXPECT_EQ(proxy.accepted(), 2U);
}

TEST_F(AwsHttp2, LeavesASilentConnectionAlsoWhereOneRequestFollowsTheOther) {
    http();
    proxy.strand();
    test::outcomes<result<http_reply>> early;
    test::outcomes<result<http_reply>> late;
    std::size_t sent_late = 0;
    for (const auto began = clock::now(); clock::now() - began < 4s; std::this_thread::sleep_for(100ms)) {
        const bool is_late = clock::now() - began > 2500ms;
        http().send(post(), is_late ? late.callback() : early.callback());
        sent_late += is_late ? 1 : 0;
    }
    for (const auto& came : late.take(sent_late))
        EXPECT_TRUE(came) << "always one kept the connection in use: " << came.error().detail;
    EXPECT_EQ(proxy.accepted(), 2U);
}

TEST_F(AwsHttp2, LeavesASilentConnectionForWhatMustNotBeSentTwiceWhileOthersStillWaitOnIt) {
    http();
    proxy.strand();
    test::outcomes<result<http_reply>> lost;
    auto once = post();
    once.repeatable = false;
    for (int i = 0; i < 3; ++i)
        http().send(once, lost.callback());
    std::this_thread::sleep_for(1500ms);
    EXPECT_TRUE(ask(once)) << "the first three wait on the other one, to their time-out of 10 s";
    EXPECT_TRUE(ask(health()));
    for (const auto& came : lost.take(3))
        EXPECT_FALSE(came);
}

TEST_F(AwsHttp2, EndsWhatMustNotBeSentTwiceAtItsTimeOutAndLeavesTheConnectionThen) {
    http();
    proxy.strand();
    test::outcomes<result<http_reply>> all;
    const auto began = clock::now();
    for (int i = 0; i < 10; ++i) {
        auto once = post();
        once.repeatable = false;
        once.timeout = 2s;
        http().send(std::move(once), all.callback());
    }
    for (const auto& came : all.take(10)) {
        ASSERT_FALSE(came);
        EXPECT_TRUE(came.error().in_doubt);
    }
    EXPECT_GE(clock::now() - began, 2s);
    EXPECT_LT(clock::now() - began, 6s);
    EXPECT_TRUE(ask(health()));
    EXPECT_EQ(proxy.accepted(), 2U);
}

TEST_F(AwsHttp2, EndsEachRequestInItsTimeWhereNothingPassesAndGoesOnAfterIt) {
    http();
    proxy.hold();
    test::outcomes<result<http_reply>> all;
    const auto began = clock::now();
    for (int i = 0; i < 60; ++i) {
        auto what = post();
        what.timeout = 4s;
        http().send(std::move(what), all.callback());
    }
    for (const auto& came : all.take(60))
        EXPECT_FALSE(came);
    EXPECT_LT(clock::now() - began, 8s);
    proxy.release();
    const auto after = ask(health());
    EXPECT_TRUE(after) << after.error().detail;
}

TEST_F(AwsHttp2, TheClientSendsAgainWhatWasUnderWayOnAConnectionWhosePacketsAreDropped) {
    client sut(
        {.service = "kinesis",
         .region = "us-east-1",
         .endpoint = url(),
         .stall_timeout = 1s,
         .ca_file = options.ca_file},
        std::make_shared<fixed_keys>(aws_keys{"any", "any", "", std::nullopt})
    );
    const api_request list{
        .operation = "Kinesis_20131202.ListStreams",
        .content_type = "application/x-amz-json-1.1",
        .body = "{}"};
    test::outcomes<tl::expected<api_reply, api_failure>> all;
    sut.send(list, all.callback());
    ASSERT_TRUE(all.next());
    proxy.strand();
    for (int i = 0; i < 40; ++i)
        sut.send(list, all.callback());
    for (const auto& came : all.take(40))
        EXPECT_TRUE(came) << came.error().why.detail;
    EXPECT_EQ(proxy.accepted(), 2U);
}

}  // namespace
}  // namespace millrace::aws
