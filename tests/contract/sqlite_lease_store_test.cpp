#include "sqlite_lease_store.hpp"

#include "contract/loop_host.hpp"
#include "database.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace millrace {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

struct SqliteLeaseStore : testing::Test {
    std::unique_ptr<sqlite_lease_store> make() {
        return std::make_unique<sqlite_lease_store>(
            home, sqlite_lease_store_options{.path = path, .group = {"s", "g"}}
        );
    }
    result<void> write(lease_store& to, std::uint64_t v) {
        shard_row row;
        row.shard = shard_id{"a"};
        row.version = version{v};
        row.write_id = write_id{v};
        const auto expected = v == 1 ? std::nullopt : std::optional(version{v - 1});
        return home.await<void>([&](auto done) { to.write(row, expected, std::move(done)); });
    }
    void remove_files() {
        for (const auto* ending : {"", "-wal", "-shm"})
            std::filesystem::remove(path + ending);
    }

    support::temporary_folder files;
    std::string path = files.file("state.db");
    test::loop_host home;
};

TEST_F(SqliteLeaseStore, DoesNotMakeAFileAnewThatVanishedWhileItWasUsedButUsesThatOfAnother) {
    const auto store = make();
    ASSERT_TRUE(write(*store, 1));
    remove_files();
    for (int i = 0; i < 2; ++i) {
        const auto refused = write(*store, 1);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, errc::not_found);
        EXPECT_THAT(refused.error().detail, HasSubstr("to begin anew instead, stop all workers"));
        EXPECT_FALSE(std::filesystem::exists(path));
    }
    const auto other = make();
    EXPECT_TRUE(write(*other, 1));
    EXPECT_TRUE(write(*store, 2)) << "the file is there again";
}

TEST_F(SqliteLeaseStore, ListsAShardWhoseRowCannotBeReadByItsNameAndTheOthersAsTheyAre) {
    const auto store = make();
    ASSERT_TRUE(write(*store, 1));
    shard_row other;
    other.shard = shard_id{"b"};
    other.version = version{1};
    ASSERT_TRUE(home.await<void>([&](auto done) { store->write(other, std::nullopt, std::move(done)); }));
    ASSERT_TRUE(sqlite::database::open(path, {})->execute(
        "UPDATE millrace_shard SET epoch = 'many' WHERE shard = 'a'"
    ));
    const auto listed =
        home.await<std::vector<shard_row>>([&](auto done) { store->list_shards(std::move(done)); });
    ASSERT_TRUE(listed) << listed.error().detail;
    ASSERT_EQ(listed->size(), 2U);
    EXPECT_EQ(listed->front().shard, shard_id{"a"});
    EXPECT_THAT(listed->front().unreadable, HasSubstr("column epoch of shard \"a\""));
    EXPECT_EQ(listed->back(), other);
}

TEST_F(SqliteLeaseStore, ListsAWorkerWhoseRowCannotBeReadByItsSessionAndTheOthersAsTheyAre) {
    const auto store = make();
    worker_row row{.worker = worker_id{"w"}, .counter = version{1}, .lease = 10s};
    for (const auto* name : {"a", "b", "c"}) {
        row.incarnation = incarnation{name};
        ASSERT_TRUE(home.await<void>([&](auto done) { store->write(row, std::nullopt, std::move(done)); }));
    }
    ASSERT_TRUE(sqlite::database::open(path, {})->execute(
        "UPDATE millrace_worker SET counter = '7x' WHERE incarnation = 'a'; "
        "UPDATE millrace_worker SET lease_ns = 'long' WHERE incarnation = 'b'"
    ));
    const auto listed =
        home.await<std::vector<worker_row>>([&](auto done) { store->list_workers(std::move(done)); });
    ASSERT_TRUE(listed) << listed.error().detail;
    ASSERT_EQ(listed->size(), 3U);
    EXPECT_EQ(listed->at(0).incarnation, incarnation{"a"});
    EXPECT_THAT(listed->at(0).unreadable, HasSubstr("column counter of worker \"w\""));
    EXPECT_EQ(listed->at(0).counter, version{0}) << "not the number that SQLite would make of it";
    EXPECT_EQ(listed->at(0).lease, nanoseconds{10s});
    EXPECT_THAT(listed->at(1).unreadable, HasSubstr("column lease_ns"));
    EXPECT_EQ(listed->at(1).lease, nanoseconds{0});
    EXPECT_EQ(listed->at(1).counter, version{1});
    EXPECT_EQ(listed->at(2), row);
}

TEST_F(SqliteLeaseStore, DoesNotMakeTablesInAFileThatTookThePlaceOfTheOneItUsed) {
    const auto store = make();
    ASSERT_TRUE(write(*store, 1));
    remove_files();
    ASSERT_TRUE(
        sqlite::database::open(path, {.mode = sqlite::open_mode::create})->execute("CREATE TABLE mine (a)")
    );
    const auto refused = write(*store, 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::not_found);
    EXPECT_THAT(refused.error().detail, HasSubstr("holds no leases any more"));
}

/// A worker that writes the checkpoints of many shards, each as soon as the one before is written.
class busy_worker {
public:
    busy_worker(const std::string& path, int number, int shards)
        : thread_([path, number, shards, this](const std::stop_token& stop) {
              test::loop_host home;
              sqlite_lease_store store(home, {.path = path, .group = {"s", "g"}});
              for (int i = 0; i < shards; ++i)
                  write(store, fmt::format("{}-{}", number, i), 1, stop);
              while (!stop.stop_requested() || under_way_ > 0)
                  home.run_for(10ms);
          }) {}

    [[nodiscard]] int written() const { return written_; }

private:
    void write(lease_store& to, const std::string& shard, std::uint64_t v, const std::stop_token& stop) {
        shard_row row;
        row.shard = shard_id{shard};
        row.version = version{v};
        ++under_way_;
        const auto expected = v == 1 ? std::nullopt : std::optional(version{v - 1});
        to.write(row, expected, [this, &to, shard, v, stop](const result<void>& how) {
            --under_way_;
            if (how) ++written_;
            if (!stop.stop_requested()) write(to, shard, how ? v + 1 : v, stop);
        });
    }

    int under_way_{0};
    std::atomic<int> written_{0};
    std::jthread thread_;
};

TEST_F(SqliteLeaseStore, HeartbeatsAreNotStarvedByTheCheckpointsOfOtherWorkers) {
    const auto mine = make();
    ASSERT_TRUE(write(*mine, 1));
    std::deque<busy_worker> others;
    for (int i = 0; i < 4; ++i)
        others.emplace_back(path, i, 45);
    auto slowest = 0ms;
    int failed = 0;
    std::uint64_t counter = 1;
    for (const auto until = std::chrono::steady_clock::now() + 5s;
         std::chrono::steady_clock::now() < until;) {
        const auto began = std::chrono::steady_clock::now();
        if (write(*mine, counter + 1)) {
            ++counter;
        } else {
            ++failed;
        }
        slowest = std::max(
            slowest,
            std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began)
        );
        home.run_for(50ms);
    }
    int least = std::numeric_limits<int>::max();
    int sum = 0;
    for (const auto& one : others) {
        least = std::min(least, one.written());
        sum += one.written();
    }
    RecordProperty("slowest_ms", static_cast<int>(slowest.count()));
    RecordProperty("checkpoints", sum);
    EXPECT_EQ(failed, 0);
    EXPECT_LT(slowest, 800ms) << counter << " heartbeats, " << sum << " checkpoints";
    EXPECT_GT(least, 45 * 5) << "nor is a worker starved by the others: " << sum;
}

TEST_F(SqliteLeaseStore, WritesThatAreDoneTogetherSucceedAndFailEachForItself) {
    const auto store = make();
    ASSERT_TRUE(write(*store, 1));
    std::vector<result<void>> outcomes;
    const auto add = [&](const char* shard, std::uint64_t v, std::optional<version> expected) {
        shard_row row;
        row.shard = shard_id{shard};
        row.version = version{v};
        store->write(row, expected, [&](const result<void>& how) { outcomes.push_back(how); });
    };
    add("b", 1, std::nullopt);
    add("a", 8, version{7});
    add("c", 1, std::nullopt);
    add("a", 2, version{1});
    store->remove(shard_id{"b"}, version{1}, [&](const result<void>& how) { outcomes.push_back(how); });
    while (outcomes.size() < 5)
        home.run_for(5ms);
    EXPECT_TRUE(outcomes[0] && outcomes[2] && outcomes[3] && outcomes[4]);
    ASSERT_FALSE(outcomes[1]);
    EXPECT_EQ(outcomes[1].error().code, errc::conflict);
    const auto rows =
        home.await<std::vector<shard_row>>([&](auto done) { store->list_shards(std::move(done)); });
    ASSERT_TRUE(rows && rows->size() == 2);
    EXPECT_EQ(rows->at(0).version, version{2});
}

}  // namespace
}  // namespace millrace
