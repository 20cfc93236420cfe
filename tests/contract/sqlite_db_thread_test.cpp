#include "contract/loop_host.hpp"
#include "db_thread.hpp"
#include "support/temporary_folder.hpp"

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace millrace::sqlite {
namespace {

using namespace std::chrono_literals;

struct SqliteDbThread : testing::Test {
    std::unique_ptr<db_thread> make(db_thread_options options = {}) {
        return std::make_unique<db_thread>(
            home,
            [this] {
                ++opened;
                return database::open(path, {.mode = open_mode::create, .busy_timeout = 5'000ms});
            },
            options
        );
    }
    result<void> execute(const char* script) {
        return home.await<void>([&](completion<void> done) {
            thread->run<void>([script](database& db) { return db.execute(script); }, std::move(done));
        });
    }
    result<std::int64_t> ask(const std::string& sql) {
        return home.await<std::int64_t>([&](completion<std::int64_t> done) {
            thread->run<std::int64_t>([sql](database& db) { return db.integer(sql); }, std::move(done));
        });
    }

    support::temporary_folder files;
    std::string path = files.file("a.db");
    test::loop_host home;
    std::atomic<int> opened{0};
    std::unique_ptr<db_thread> thread = make();
};

TEST_F(SqliteDbThread, RunsJobsInOrderAndPostsTheirOutcomes) {
    ASSERT_TRUE(execute("CREATE TABLE t (n INTEGER)"));
    std::vector<std::int64_t> seen;
    for (int i = 1; i <= 100; ++i) {
        thread->run<std::int64_t>(
            [](database& db) {
                return db.run("INSERT INTO t VALUES (1)").and_then([&] {
                    return db.integer("SELECT count(*) FROM t");
                });
            },
            [&](result<std::int64_t> count) { seen.push_back(count.value_or(-1)); }
        );
    }
    ASSERT_TRUE(home.run_until([&] { return seen.size() == 100; }));
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(seen[static_cast<std::size_t>(i)], i + 1);
    EXPECT_EQ(opened, 1);
}

TEST_F(SqliteDbThread, ReportsAFailedOpenToEachJobAndTriesAnewWithTheNext) {
    path = files.file("later/a.db");
    EXPECT_EQ(ask("SELECT 1").error().code, errc::not_found);
    std::filesystem::create_directory(files.file("later"));
    EXPECT_EQ(ask("SELECT 1"), 1);
    EXPECT_EQ(opened, 2);
}

TEST_F(SqliteDbThread, OpensAnewWhenTheFileWasReplaced) {
    ASSERT_TRUE(execute("CREATE TABLE t AS SELECT 1 AS n"));
    for (const auto* suffix : {"", "-wal", "-shm"})
        std::filesystem::remove(path + suffix);
    ASSERT_TRUE(execute("CREATE TABLE t AS SELECT 2 AS n"));
    EXPECT_EQ(ask("SELECT n FROM t"), 2);
    EXPECT_EQ(opened, 2);
}

TEST_F(SqliteDbThread, LeavesAFileAloneThatWasPutBesideTheLogOfTheOneBefore) {
    ASSERT_TRUE(execute("CREATE TABLE t (n); INSERT INTO t VALUES (1)"));
    const auto backup = files.file("backup.db");
    {
        auto copy = database::open(backup, {.mode = open_mode::create}).value();
        ASSERT_TRUE(copy.execute("CREATE TABLE t (n); INSERT INTO t VALUES (7)"));
    }
    std::filesystem::rename(backup, path);
    for (int i = 0; i < 2; ++i) {
        const auto refused = ask("SELECT n FROM t");
        ASSERT_FALSE(refused) << "it read " << *refused;
        EXPECT_EQ(refused.error().code, errc::unavailable);
        EXPECT_NE(refused.error().detail.find("a.db-wal"), std::string::npos) << refused.error().detail;
    }
    std::filesystem::remove(path + "-wal");
    std::filesystem::remove(path + "-shm");
    EXPECT_EQ(ask("SELECT n FROM t"), 7);
}

TEST_F(SqliteDbThread, SignalsCommitsOfOthersSoonAndItsOwnNever) {
    ASSERT_TRUE(execute("CREATE TABLE t (n INTEGER)"));
    int signals = 0;
    thread->watch([&] { ++signals; });
    ASSERT_TRUE(execute("INSERT INTO t VALUES (1)"));
    home.run_for(50ms);
    EXPECT_EQ(signals, 0);

    auto other = database::open(path, {});
    for (int i = 1; i <= 5; ++i) {
        ASSERT_TRUE(other->run("INSERT INTO t VALUES (2)"));
        const auto committed = home.now();
        ASSERT_TRUE(home.run_until([&] { return signals == i; }));
        EXPECT_LT(home.now() - committed, 200ms);
    }

    thread->watch({});
    ASSERT_TRUE(other->run("INSERT INTO t VALUES (3)"));
    home.run_for(50ms);
    EXPECT_EQ(signals, 5);
}

TEST_F(SqliteDbThread, SignalsACommitThatCameBetweenTheFirstJobAndTheWatch) {
    ASSERT_TRUE(execute("CREATE TABLE t (n INTEGER)"));
    ASSERT_TRUE(database::open(path, {})->run("INSERT INTO t VALUES (2)"));
    int signals = 0;
    thread->watch([&] { ++signals; });
    EXPECT_TRUE(home.run_until([&] { return signals == 1; }));
}

TEST_F(SqliteDbThread, SignalsWhileJobsKeepComing) {
    ASSERT_TRUE(execute("CREATE TABLE t (n INTEGER)"));
    int signals = 0;
    thread->watch([&] { ++signals; });
    ASSERT_TRUE(database::open(path, {})->run("INSERT INTO t VALUES (2)"));
    for (int i = 0; i < 1'000'000 && signals == 0; ++i)
        ASSERT_TRUE(ask("SELECT 1"));
    EXPECT_EQ(signals, 1);
}

TEST_F(SqliteDbThread, WatchingCostsFarBelowAHundredthOfACore) {
    ASSERT_TRUE(execute("CREATE TABLE t (n INTEGER)"));
    thread->watch([] {});
    const auto used = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return std::chrono::seconds{usage.ru_utime.tv_sec + usage.ru_stime.tv_sec} +
               std::chrono::microseconds{usage.ru_utime.tv_usec + usage.ru_stime.tv_usec};
    };
    const auto before = used();
    home.run_for(500ms);
    EXPECT_LT(used() - before, 25ms);  // 5 %: room for sanitizers; it measures 0.3 %
}

TEST_F(SqliteDbThread, RefusesWorkAboveItsBound) {
    thread = make({.jobs_max = 2});
    std::promise<void> open_gate;
    auto gate = open_gate.get_future().share();
    std::atomic<bool> blocked{false};
    std::vector<result<void>> outcomes;
    const auto job = [&, gate](database&) -> result<void> {
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
    EXPECT_EQ(outcomes[0].error().retry, retry_advice::after_delay);
    open_gate.set_value();
    ASSERT_TRUE(home.run_until([&] { return outcomes.size() == 4; }));
    for (std::size_t i = 1; i < 4; ++i)
        EXPECT_TRUE(outcomes[i]);
}

TEST_F(SqliteDbThread, EndsAtOnceWhileItWaitsForALockAndCompletesWhatWaits) {
    ASSERT_TRUE(execute("CREATE TABLE t (n INTEGER)"));
    auto other = database::open(path, {});
    auto held = other->begin(transaction_kind::immediate);
    ASSERT_TRUE(held);
    std::vector<error> failures;
    for (int i = 0; i < 3; ++i) {
        thread->run<void>(
            [](database& db) { return db.run("INSERT INTO t VALUES (1)"); },
            [&](result<void> r) { failures.push_back(r.error()); }
        );
    }
    home.run_for(20ms);
    const auto began = home.now();
    thread.reset();
    EXPECT_LT(home.now() - began, 1'000ms);
    ASSERT_TRUE(home.run_until([&] { return failures.size() == 3; }));
    EXPECT_EQ(failures[1].code, errc::cancelled);
    EXPECT_EQ(failures[2].code, errc::cancelled);
}

}  // namespace
}  // namespace millrace::sqlite
