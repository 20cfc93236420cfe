#include "integration/aws_client_fixture.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace millrace::aws::client_test {
namespace {

using testing::HasSubstr;
using clock = std::chrono::steady_clock;

TEST_F(AwsClient, SendsSignedRequestsAndGivesReplyAndDate) {
    seen_request seen;
    serve_by([&](const seen_request& request) {
        seen = request;
        return raw_answer{http_answer(
            200,
            "reply",
            "Content-Type: application/x-amz-cbor-1.1\r\nDate: Mon, 30 Nov 2026 16:07:25 GMT\r\n"
        )};
    });
    auto what = read_request("body");
    what.content_type = "application/x-amz-cbor-1.1";
    const auto came = ask(std::move(what));
    ASSERT_TRUE(came) << came.error().why.detail;
    EXPECT_EQ(came->body, "reply");
    EXPECT_EQ(came->content_type, "application/x-amz-cbor-1.1");
    EXPECT_EQ(date_text(came->date), "Mon, 30 Nov 2026 16:07:25 GMT");
    EXPECT_EQ(seen.method, "POST");
    EXPECT_EQ(seen.target, "/");
    EXPECT_EQ(seen.body, "body");
    EXPECT_EQ(seen.header("x-amz-target"), "Kinesis_20131202.GetRecords");
    EXPECT_EQ(seen.header("content-type"), "application/x-amz-cbor-1.1");
    EXPECT_TRUE(is_signed_with(seen, right_keys));
    EXPECT_FALSE(is_signed_with(seen, {"AKIDRIGHT", "wrong", "", std::nullopt}));
    EXPECT_THAT(
        seen.header("authorization"), HasSubstr("SignedHeaders=content-type;host;x-amz-date;x-amz-target,")
    );
}

TEST_F(AwsClient, SignsTheSessionTokenOfTemporaryKeys) {
    seen_request seen;
    serve_by([&](const seen_request& request) {
        seen = request;
        return good();
    });
    const aws_keys temporary{"ASIA", "secret", "token", now() + 1h};
    use(std::make_shared<fixed_keys>(temporary));
    ASSERT_TRUE(ask(read_request()));
    EXPECT_EQ(seen.header("x-amz-security-token"), "token");
    EXPECT_TRUE(is_signed_with(seen, temporary));
}

TEST_F(AwsClient, WaitsOutThrottlingAndFaults) {
    serve(
        {refuse(400, "ProvisionedThroughputExceededException"),
         refuse(500, "InternalFailure"),
         {http_answer(503, "<html>"), 0ms, true},
         {std::string(), 0ms, true},
         good("done")}
    );
    const auto came = ask(read_request());
    ASSERT_TRUE(came) << came.error().why.detail;
    EXPECT_EQ(came->body, "done");
    EXPECT_EQ(server->requests(), 5U);
}

TEST_F(AwsClient, TellsThrottlingAtOnceToACallerWithAPaceOfItsOwn) {
    serve({refuse(400, "ProvisionedThroughputExceededException", "Rate exceeded for shard"), good()});
    auto what = read_request();
    what.wait_when_throttled = false;
    const auto came = ask(std::move(what));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::throttled);
    EXPECT_EQ(came.error().why.retry, retry_advice::after_delay);
    EXPECT_FALSE(came.error().why.in_doubt);
    EXPECT_EQ(came.error().type, "ProvisionedThroughputExceededException");
    EXPECT_EQ(came.error().message, "Rate exceeded for shard");
    EXPECT_EQ(server->requests(), 1U);
}

TEST_F(AwsClient, GivesUpAfterItsAttemptsAndSaysHowMany) {
    serve({refuse(500, "InternalFailure", "oops")});
    const auto came = ask(read_request());
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::unavailable);
    EXPECT_FALSE(came.error().why.in_doubt);
    EXPECT_EQ(came.error().status, 500);
    EXPECT_THAT(came.error().why.detail, HasSubstr("GetRecords at 127.0.0.1:"));
    EXPECT_THAT(came.error().why.detail, HasSubstr("InternalFailure: oops"));
    EXPECT_THAT(came.error().why.detail, HasSubstr("(after 8 attempts)"));
    EXPECT_EQ(server->requests(), 8U);
}

TEST_F(AwsClient, GivesUpAtTheTimeOutOfTheRequest) {
    serve({refuse(500, "InternalFailure"), {http_answer(200, ""), 60s}});
    auto what = read_request();
    what.timeout = 300ms;
    const auto began = clock::now();
    const auto came = ask(std::move(what));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::unavailable);
    EXPECT_LT(clock::now() - began, 10s);
    EXPECT_EQ(server->requests(), 2U);
}

TEST_F(AwsClient, IsInDoubtAtOnceWhenAWriteMayHaveTakenEffect) {
    const std::vector<raw_answer> lost{
        {std::string(), 0ms, true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", 0ms, true},
        refuse(500, "InternalFailure"),
        {http_answer(502, "<html>bad gateway</html>", "Content-Type: text/html\r\n")},
        {http_answer(504, "")},
        {http_answer(200, "damaged", "x-amz-crc32: 1\r\n")},
        {http_answer(200, "<html>log in</html>", "Content-Type: text/html\r\n")}};
    for (const auto& answer : lost) {
        serve({answer, good()});
        const auto came = ask(write_request());
        ASSERT_FALSE(came) << answer.bytes;
        EXPECT_EQ(came.error().why.code, errc::unavailable) << answer.bytes;
        EXPECT_TRUE(came.error().why.in_doubt) << answer.bytes;
        EXPECT_EQ(server->requests(), 1U) << answer.bytes;
    }
}

TEST_F(AwsClient, IsNotInDoubtWhenAWriteWasRefusedOrNeverSent) {
    for (const auto& answer :
         {refuse(400, "ConditionalCheckFailedException"),
          refuse(400, "ValidationException"),
          refuse(403, "AccessDeniedException"),
          raw_answer{http_answer(404, "<html>", "Content-Type: text/html\r\n")},
          raw_answer{http_answer(307, "", "Location: /elsewhere\r\n")}}) {
        serve({answer, good()});
        const auto came = ask(write_request());
        ASSERT_FALSE(came);
        EXPECT_FALSE(came.error().why.in_doubt) << answer.bytes;
        EXPECT_EQ(server->requests(), 1U) << answer.bytes;
    }
    const auto nowhere = [] {
        const raw_http_server gone([](const seen_request&) { return raw_answer{}; });
        return gone.url();
    }();
    client lonely(options_for(nowhere), std::make_shared<fixed_keys>(right_keys));
    test::outcomes<api_outcome> all;
    lonely.send(write_request(), all.callback());
    const auto came = all.next();
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::unavailable);
    EXPECT_FALSE(came.error().why.in_doubt);
    EXPECT_THAT(came.error().why.detail, HasSubstr("(after 8 attempts)"));
}

TEST_F(AwsClient, SendsAWriteAgainWhileItWasRefusedWithoutEffect) {
    serve(
        {refuse(400, "ThrottlingException"),
         refuse(400, "TransactionConflictException"),
         {http_answer(429, "")},
         good()}
    );
    EXPECT_TRUE(ask(write_request()));
    EXPECT_EQ(server->requests(), 4U);
}

TEST_F(AwsClient, ReadsAgainWhatWasDamagedOnTheWay) {
    serve(
        {{http_answer(200, "123456780", "x-amz-crc32: 3421780262\r\n")},
         {http_answer(200, "123456789", "x-amz-crc32: 3421780262\r\n")}}
    );
    const auto came = ask(read_request());
    ASSERT_TRUE(came);
    EXPECT_EQ(came->body, "123456789");
    EXPECT_EQ(server->requests(), 2U);
}

/// Keeps the callbacks.
class silent_keys final : public key_source {
public:
    void get(std::function<void(result<aws_keys>)> done) override {
        const std::lock_guard lock(mutex);
        asked.push_back(std::move(done));
        more.notify_all();
    }
    void refused(const aws_keys& /*which*/) override {}

    std::mutex mutex;
    std::condition_variable more;
    std::vector<std::function<void(result<aws_keys>)>> asked;
};

TEST_F(AwsClient, EndsPromptlyWhateverItsRequestsWaitFor) {
    std::promise<void> received;
    serve_by([&](const seen_request& request) {
        if (request.body == "throttled") return refuse(400, "ThrottlingException");
        received.set_value();
        return raw_answer{http_answer(200, ""), 60s};
    });
    auto slow = options_for(server->url());
    slow.throttled_pause = slow.pause_max = 60s;
    sut = std::make_unique<client>(slow, std::make_shared<fixed_keys>(right_keys));
    test::outcomes<api_outcome> sent;
    test::outcomes<api_outcome> pausing;
    auto patient = read_request("throttled");
    patient.timeout = 600s;
    sut->send(std::move(patient), pausing.callback());
    while (server->requests() == 0)
        std::this_thread::yield();
    sut->send(write_request(), sent.callback());
    received.get_future().wait();

    const auto keys = std::make_shared<silent_keys>();
    auto other = std::make_unique<client>(options_for(server->url()), keys);
    test::outcomes<api_outcome> keyless;
    other->send(write_request(), keyless.callback());
    {
        std::unique_lock lock(keys->mutex);
        keys->more.wait(lock, [&] { return !keys->asked.empty(); });
    }

    const auto began = clock::now();
    sut.reset();
    other.reset();
    EXPECT_LT(clock::now() - began, 10s);
    const auto of_sent = sent.next();
    ASSERT_FALSE(of_sent);
    EXPECT_EQ(of_sent.error().why.code, errc::cancelled);
    EXPECT_TRUE(of_sent.error().why.in_doubt);
    for (auto* const each : {&pausing, &keyless}) {
        const auto came = each->next();
        ASSERT_FALSE(came);
        EXPECT_EQ(came.error().why.code, errc::cancelled);
        EXPECT_FALSE(came.error().why.in_doubt);
    }
    keys->asked.front()(right_keys);  // too late: nothing happens
}

TEST_F(AwsClient, CancelsWhatAnOutcomeSendsWhileItEnds) {
    serve({good()});
    auto* const ending = sut.get();
    std::promise<void> told;
    std::promise<void> begun;
    test::outcomes<api_outcome> late;
    sut->send(read_request(), [&](const api_outcome&) {
        told.set_value();
        begun.get_future().wait();
        std::this_thread::sleep_for(50ms);  // by now the end waits for this thread
        ending->send(read_request(), late.callback());
    });
    told.get_future().wait();
    begun.set_value();
    sut.reset();
    const auto came = late.next();
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::cancelled);
}

TEST_F(AwsClient, TellsEveryOutcomeHoweverSoonItEnds) {
    for (int i = 0; i < 50; ++i) {
        serve({good()});
        std::atomic<int> told{0};
        for (int j = 0; j < 4; ++j)
            sut->send(read_request(), [&](const api_outcome&) { ++told; });
        sut.reset();
        ASSERT_EQ(told, 4);
    }
}

TEST_F(AwsClient, RefusesMoreRequestsThanMayWait) {
    serve({{http_answer(200, ""), 60s}});
    auto few = options_for(server->url());
    few.requests_max = 2;
    sut = std::make_unique<client>(few, std::make_shared<fixed_keys>(right_keys));
    test::outcomes<api_outcome> all;
    for (int i = 0; i < 3; ++i)
        sut->send(write_request(), all.callback());
    const auto refused = all.next();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().why.code, errc::throttled);
    EXPECT_FALSE(refused.error().why.in_doubt);
    sut.reset();
    EXPECT_EQ(all.count(), 2U);
}

TEST_F(AwsClient, ServesManyThreadsOverItsFewConnections) {
    serve_by([](const seen_request& request) { return good(request.body); });
    auto few = options_for(server->url());
    few.connections_max = 4;
    sut = std::make_unique<client>(few, std::make_shared<fixed_keys>(right_keys));
    test::outcomes<api_outcome> all;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 100; ++i)
                sut->send(read_request(fmt::format("{}:{}", t, i)), all.callback());
        });
    }
    for (auto& each : threads)
        each.join();
    std::set<std::string> bodies;
    for (const auto& came : all.take(400)) {
        ASSERT_TRUE(came) << came.error().why.detail;
        bodies.insert(came->body);
    }
    EXPECT_EQ(bodies.size(), 400U);
    EXPECT_LE(server->connections(), 4U);
}

TEST(AwsClientOptions, NameTheFieldThatIsWrong) {
    const client_options right{.service = "kinesis", .region = "eu-west-1"};
    EXPECT_TRUE(right.validate());
    const auto wrong = [&](auto change, const char* field) {
        auto options = right;
        change(options);
        const auto checked = options.validate();
        ASSERT_FALSE(checked) << field;
        EXPECT_THAT(checked.error().detail, HasSubstr(field));
    };
    wrong([](auto& o) { o.service.clear(); }, "service");
    wrong([](auto& o) { o.region.clear(); }, "region");
    wrong([](auto& o) { o.region = "eu/../west"; }, "region");
    wrong([](auto& o) { o.endpoint = "localhost:4567"; }, "endpoint");
    wrong([](auto& o) { o.connections_max = 0; }, "connections_max");
    wrong([](auto& o) { o.connections_max = 1'025; }, "connections_max");
    wrong([](auto& o) { o.requests_max = 0; }, "requests_max");
    wrong([](auto& o) { o.reply_bytes_max = 0; }, "reply_bytes_max");
    wrong([](auto& o) { o.attempts_max = 0; }, "attempts_max");
    wrong([](auto& o) { o.connect_timeout = 0ms; }, "connect_timeout");
    wrong([](auto& o) { o.stall_timeout = 0ms; }, "stall_timeout");
    wrong([](auto& o) { o.throttled_pause = 0ms; }, "throttled_pause");
    wrong([](auto& o) { o.transient_pause = 0ms; }, "transient_pause");
    wrong([](auto& o) { o.pause_max = 0ms; }, "pause_max");
}

}  // namespace
}  // namespace millrace::aws::client_test
