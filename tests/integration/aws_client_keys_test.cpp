#include "integration/aws_client_fixture.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace millrace::aws::client_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using AwsClientKeys = AwsClient;

/// Takes requests that are signed with the right secret within five minutes of its own clock, as AWS does.
raw_http_server::handler strict_service(std::chrono::seconds ahead, std::atomic<int>& refusals) {
    return [ahead, &refusals](const seen_request& request) {
        const auto here = now() + ahead;
        const auto date = "Date: " + date_text(here) + "\r\n";
        const auto off = time_of(request) - here;
        if (off > 5min || off < -5min) {
            ++refusals;
            return refuse(
                403,
                "InvalidSignatureException",
                off < 0s ? "Signature expired: x" : "Signature not yet current: x",
                date
            );
        }
        if (!is_signed_with(request, right_keys)) {
            ++refusals;
            return refuse(
                403,
                "InvalidSignatureException",
                "The request signature we calculated does not match the signature you provided.",
                date
            );
        }
        return raw_answer{http_answer(200, "{}", date)};
    };
}

TEST_F(AwsClientKeys, SignsByTheServicesClockWhenThisMachinesIsMinutesOff) {
    for (const auto ahead : {std::chrono::seconds(5min + 10s), std::chrono::seconds(-5min - 10s)}) {
        std::atomic<int> refusals{0};
        serve_by(strict_service(ahead, refusals));
        const auto came = ask(write_request());
        ASSERT_TRUE(came) << came.error().why.detail;
        EXPECT_EQ(refusals, 1);
        EXPECT_NEAR(
            static_cast<double>((came->date - now()).count()), static_cast<double>(ahead.count()) * 1e3, 3e3
        );
        for (int i = 0; i < 3; ++i)
            ASSERT_TRUE(ask(write_request()));
        EXPECT_EQ(refusals, 1);  // the offset is kept
    }
}

TEST_F(AwsClientKeys, SignsAllRequestsUnderWayAnewWhenTheClockIsWrong) {
    std::atomic<int> refusals{0};
    serve_by(strict_service(10min, refusals));
    test::outcomes<api_outcome> all;
    for (int i = 0; i < 20; ++i)
        sut->send(read_request(), all.callback());
    for (const auto& came : all.take(20))
        EXPECT_TRUE(came) << came.error().why.detail;
    EXPECT_LE(refusals, 20);
}

TEST_F(AwsClientKeys, SaysWhatToCheckWhenTheSecretIsWrongWithoutShowingIt) {
    std::atomic<int> refusals{0};
    serve_by(strict_service(0s, refusals));
    use(std::make_shared<fixed_keys>(aws_keys{"AKIDRIGHT", "a-wrong-secret", "a-token", std::nullopt}));
    const auto came = ask(read_request());
    ASSERT_FALSE(came);
    EXPECT_EQ(refusals, 1);
    EXPECT_EQ(came.error().why.code, errc::permission_denied);
    EXPECT_EQ(came.error().why.retry, retry_advice::after_delay);
    EXPECT_THAT(came.error().why.detail, HasSubstr("check the secret access key"));
    EXPECT_THAT(came.error().why.detail, Not(HasSubstr("a-wrong-secret")));
    EXPECT_THAT(came.error().why.detail, Not(HasSubstr("a-token")));
}

/// Gives keys that a test sets, on a thread of its own; counts refusals.
class changing_keys final : public key_source {
public:
    explicit changing_keys(std::vector<aws_keys> all) : all_(std::move(all)) {}
    ~changing_keys() override {
        for (auto& each : threads_)
            each.join();
    }
    changing_keys(const changing_keys&) = delete;
    changing_keys& operator=(const changing_keys&) = delete;

    void get(std::function<void(result<aws_keys>)> done) override {
        const std::lock_guard lock(mutex_);
        threads_.emplace_back([done = std::move(done), given = all_.front()] { done(given); });
    }
    void refused(const aws_keys& which) override {
        const std::lock_guard lock(mutex_);
        ++refusals_;
        if (which == all_.front() && all_.size() > 1) all_.erase(all_.begin());
    }
    [[nodiscard]] int refusals() const {
        const std::lock_guard lock(mutex_);
        return refusals_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<aws_keys> all_;
    std::vector<std::thread> threads_;
    int refusals_{0};
};

TEST_F(AwsClientKeys, GetsOtherKeysOnceWhenTheServiceSaysTheyAreExpired) {
    const aws_keys old{"AKIDOLD", "old", "", std::nullopt};
    for (const auto* const type : {"ExpiredTokenException", "UnrecognizedClientException"}) {
        serve_by([type](const seen_request& request) {
            return is_signed_with(request, right_keys) ? good() : refuse(400, type);
        });
        const auto keys = std::make_shared<changing_keys>(std::vector{old, right_keys});
        use(keys);
        const auto came = ask(write_request());
        ASSERT_TRUE(came) << came.error().why.detail;
        EXPECT_EQ(keys->refusals(), 1);
        EXPECT_EQ(server->requests(), 2U);
        sut.reset();
    }
}

TEST_F(AwsClientKeys, DoesNotAskAgainWithTheSameKeys) {
    serve(
        {refuse(400, "UnrecognizedClientException", "The security token included in the request is invalid.")}
    );
    const auto keys = std::make_shared<changing_keys>(std::vector{right_keys});
    use(keys);
    const auto came = ask(read_request());
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::permission_denied);
    EXPECT_EQ(came.error().type, "UnrecognizedClientException");
    EXPECT_THAT(came.error().why.detail, HasSubstr("check the access key"));
    EXPECT_EQ(keys->refusals(), 1);
    EXPECT_EQ(server->requests(), 1U);
    sut.reset();
}

TEST_F(AwsClientKeys, EndsWhenOtherKeysAreExpiredToo) {
    serve({refuse(400, "ExpiredTokenException")});
    const auto keys = std::make_shared<changing_keys>(std::vector<aws_keys>{
        {"1", "1", "", {}}, {"2", "2", "", {}}, {"3", "3", "", {}}});
    use(keys);
    ASSERT_FALSE(ask(read_request()));
    EXPECT_EQ(server->requests(), 2U);
    EXPECT_EQ(keys->refusals(), 2);
    sut.reset();
}

/// Gives no keys, so often, then the right ones.
class late_keys final : public key_source {
public:
    late_keys(error why, int failures) : why_(std::move(why)), failures_(failures) {}
    void get(std::function<void(result<aws_keys>)> done) override {
        if (failures_-- > 0) return done(tl::unexpected(why_));
        done(right_keys);
    }
    void refused(const aws_keys& /*which*/) override {}

private:
    error why_;
    std::atomic<int> failures_;
};

TEST_F(AwsClientKeys, WaitsForKeysWhoseSourceIsDown) {
    serve({good()});
    use(std::make_shared<late_keys>(error{errc::unavailable, retry_advice::after_delay, true, "down"}, 3));
    EXPECT_TRUE(ask(write_request()));
}

TEST_F(AwsClientKeys, TellsAtOnceThatThereAreNoKeys) {
    serve({good()});
    use(std::make_shared<late_keys>(
        error{errc::invalid_config, retry_advice::never, false, "set AWS_PROFILE"}, 9
    ));
    const auto came = ask(write_request());
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why, (error{errc::invalid_config, retry_advice::never, false, "set AWS_PROFILE"}));
    EXPECT_EQ(server->requests(), 0U);
}

/// Tells the keys when the test says so.
struct slow_keys final : key_source {
    void get(std::function<void(result<aws_keys>)> done) override {
        const std::lock_guard lock(mutex);
        waiting.push_back(std::move(done));
    }
    void refused(const aws_keys& /*which*/) override {}

    std::mutex mutex;
    std::vector<std::function<void(result<aws_keys>)>> waiting;
};

TEST_F(AwsClientKeys, ARequestWhoseKeysComeTooLateIsNeverSentAndNotInDoubt) {
    std::atomic<int> requests{0};
    serve_by([&](const seen_request&) {
        ++requests;
        return good();
    });
    const auto keys = std::make_shared<slow_keys>();
    use(keys);
    auto what = write_request();
    what.timeout = 200ms;
    const auto began = std::chrono::steady_clock::now();
    const auto came = ask(std::move(what));
    EXPECT_LT(std::chrono::steady_clock::now() - began, 4s);
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().why.code, errc::unavailable);
    EXPECT_FALSE(came.error().why.in_doubt);
    EXPECT_THAT(came.error().why.detail, HasSubstr("no keys came in its time"));
    {
        const std::lock_guard lock(keys->mutex);
        ASSERT_EQ(keys->waiting.size(), 1U);
        keys->waiting.front()(right_keys);
    }
    use(std::make_shared<fixed_keys>(right_keys));
    ASSERT_TRUE(ask(read_request()));
    EXPECT_EQ(requests, 1) << "the late one was not sent";
}

}  // namespace
}  // namespace millrace::aws::client_test
