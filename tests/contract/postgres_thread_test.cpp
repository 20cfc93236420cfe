#include "contract/loop_host.hpp"
#include "contract/postgres_fixture.hpp"
#include "pg_thread.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <vector>

namespace millrace::postgres {
namespace {

using namespace std::chrono_literals;
using test::reading;

struct PostgresThread : testing::Test {
    std::unique_ptr<pg_thread> make(pg_thread_options options = {}) {
        return std::make_unique<pg_thread>(
            home,
            [this](const stop_signal& stop) {
                ++opened;
                return connection::open(test::shared_server_at(proxy.port()), stop);
            },
            options
        );
    }
    result<std::int64_t> ask(std::string sql = "SELECT 1") {
        return home.await<std::int64_t>([&](completion<std::int64_t> done) {
            thread->run<std::int64_t>(
                [sql](connection& db) {
                    return db.run(reading(sql)).map([](const rows& r) {
                        return r.integer(0, 0).value_or(-1);
                    });
                },
                std::move(done)
            );
        });
    }
    result<std::uint64_t> number() {
        return home.await<std::uint64_t>([&](completion<std::uint64_t> done) {
            thread->run<std::uint64_t>(
                [](connection& db) { return result<std::uint64_t>(db.number()); }, done
            );
        });
    }

    support::fault_proxy proxy{support::port_of(support::services().postgres)};
    test::loop_host home;
    std::atomic<int> opened{0};
    std::unique_ptr<pg_thread> thread = make();
};

TEST_F(PostgresThread, RunsJobsInOrderOnOneConnection) {
    EXPECT_EQ(opened, 0) << "nobody has asked yet";
    std::vector<int> seen;
    for (int i = 0; i < 100; ++i) {
        thread->run<void>(
            [](connection& db) { return db.run(reading("SELECT 1")).map([](const rows&) {}); },
            [&seen, i](const result<void>& r) {
                EXPECT_TRUE(r);
                seen.push_back(i);
            }
        );
    }
    ASSERT_TRUE(home.run_until([&] { return seen.size() == 100; }));
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(opened, 1);
}

TEST_F(PostgresThread, MakesANewConnectionForTheJobAfterTheLoss) {
    EXPECT_EQ(number(), 1U);
    proxy.cut();
    home.run_for(20ms);
    EXPECT_EQ(number(), 2U) << "the loss was seen before the job ran";
    EXPECT_EQ(ask(), 1);
}

TEST_F(PostgresThread, FailsOnlyTheJobThatMetTheLoss) {
    ASSERT_TRUE(ask());
    proxy.lose_reply("SELECT 5");
    const auto lost = ask("SELECT 5");
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code, errc::unavailable);
    EXPECT_EQ(ask("SELECT 6"), 6);
    EXPECT_EQ(number(), 2U);
}

TEST_F(PostgresThread, PausesBetweenAttemptsToConnectAndFailsJobsMeanwhile) {
    thread = make({.reconnect_min = 100ms, .reconnect_max = 100ms});
    proxy.refuse();
    const auto began = home.now();
    int failed = 0;
    while (home.now() - began < 350ms) {
        const auto refused = ask();
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, errc::unavailable);
        EXPECT_FALSE(refused.error().in_doubt);
        ++failed;
    }
    EXPECT_LE(opened, 5);
    EXPECT_GT(failed, 20) << "jobs do not wait for the next attempt";
    proxy.accept();
    home.run_for(110ms);
    EXPECT_EQ(ask(), 1);
    EXPECT_EQ(number(), 1U);
}

TEST_F(PostgresThread, RefusesWorkAboveItsBound) {
    thread = make({.jobs_max = 2});
    std::promise<void> open_gate;
    auto gate = open_gate.get_future().share();
    std::atomic<bool> blocked{false};
    std::vector<result<void>> outcomes;
    const auto job = [&, gate](connection&) -> result<void> {
        blocked = true;
        gate.wait();
        return {};
    };
    const auto collect = [&](result<void> r) { outcomes.push_back(std::move(r)); };
    thread->run<void>(job, collect);
    while (!blocked)
        home.run_for(1ms);
    for (int i = 0; i < 3; ++i)
        thread->run<void>(job, collect);
    ASSERT_TRUE(home.run_until([&] { return outcomes.size() == 1; }));
    EXPECT_EQ(outcomes[0].error().code, errc::unavailable);
    open_gate.set_value();
    ASSERT_TRUE(home.run_until([&] { return outcomes.size() == 4; }));
    for (std::size_t i = 1; i < 4; ++i)
        EXPECT_TRUE(outcomes[i]);
}

TEST_F(PostgresThread, EndsAtOnceWhileTheServerIsSilentAndCompletesWhatWaits) {
    ASSERT_TRUE(ask());
    proxy.hold();
    std::vector<error> failures;
    for (int i = 0; i < 3; ++i) {
        thread->run<void>(
            [](connection& db) { return db.run(reading("SELECT 1")).map([](const rows&) {}); },
            [&](const result<void>& r) { failures.push_back(r.error()); }
        );
    }
    home.run_for(20ms);
    const auto began = home.now();
    thread.reset();
    EXPECT_LT(home.now() - began, 1'000ms);
    ASSERT_TRUE(home.run_until([&] { return failures.size() == 3; }));
    for (const auto& failure : failures)
        EXPECT_EQ(failure.code, errc::cancelled);
}

}  // namespace
}  // namespace millrace::postgres
