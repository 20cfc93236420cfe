// Callbacks of a consumer and a relay that throw.
#include "pipeline.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

struct Callbacks : testing::Test {
    Callbacks() { files.make_stream("orders", 2); }

    [[noreturn]] static void fail_here() { throw std::runtime_error("a gauge is missing"); }

    template <class Status>
    static void expect_told(const result<Status>& outcome, const std::string& callback) {
        ASSERT_FALSE(outcome) << callback;
        EXPECT_EQ(outcome.error().code, errc::handler_failed);
        EXPECT_NE(
            outcome.error().detail.find("`" + callback + "` threw: a gauge is missing"), std::string::npos
        ) << outcome.error().detail;
    }

    pipeline_files files;
    writer shop{files};
    receipts seen;
    noting_handler handler{seen};
};

TEST_F(Callbacks, AConsumersThatThrowsEndsTheRunInOrderAndAbortIsStillSafe) {
    auto settings = files.consumer("w");
    settings.on_progress = [](const consumer_status&) { fail_here(); };
    consumer consuming(settings, handler);
    expect_told(consuming.run(), "on_progress");
    consuming.abort({errc::cancelled, retry_advice::never, false, "late"});

    auto next = files.consumer("next");
    next.idle_exit = 0s;
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_TRUE(consumer(next, handler).run());
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s) << "the leases were given back";
}

TEST_F(Callbacks, ALogThatThrowsCostsItsLinesAndNothingElse) {
    class throwing_log final : public log_sink {
    public:
        [[nodiscard]] bool enabled(log_level) const noexcept override { return true; }
        void write(log_level, std::string_view event, std::initializer_list<log_field> fields) override {
            if (event != "log.threw" && lines++ % 2 == 0) fail_here();
            if (event == "log.threw") told += std::stoul(fields.begin()->value);
        }
        std::atomic<std::size_t> lines{0};
        std::atomic<std::size_t> told{0};
    } log;
    shop.commit({numbered(1, 1)});
    auto relaying = files.relay();
    relaying.log = &log;
    relaying.once = true;
    EXPECT_TRUE(relay(relaying).run());
    auto consuming = files.consumer("w");
    consuming.log = &log;
    consuming.idle_exit = 0s;
    EXPECT_TRUE(consumer(consuming, handler).run());
    EXPECT_GT(log.lines, 1U);
    EXPECT_GT(log.told, 0U);
}

TEST_F(Callbacks, ARelaysThatThrowsEndsTheRunInOrder) {
    shop.commit({numbered(1, 1)});
    auto progress = files.relay();
    progress.on_progress = [](const relay_status&) { fail_here(); };
    expect_told(relay(progress).run(), "on_progress");

    auto leads = files.relay();
    leads.on_leadership = [](const leadership_change&) { fail_here(); };
    expect_told(relay(leads).run(), "on_leadership");

    shop.commit({numbered(2, 1)});
    auto throughput = files.relay();
    throughput.throughput_every = 1ms;
    throughput.on_throughput = [](const relay_throughput&) { fail_here(); };
    expect_told(relay(throughput).run(), "on_throughput");
}

}  // namespace
}  // namespace millrace::test
