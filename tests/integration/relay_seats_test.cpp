// Relays that lead several outboxes, share them as a fleet, give way, and are cut off from their database.
#include "pipeline.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 30s;

/// Keeps a file of SQLite to itself, so that everybody else is told to come again.
class file_lock {
public:
    explicit file_lock(const std::string& file) {
        EXPECT_EQ(sqlite3_open(file.c_str(), &db_), SQLITE_OK);
        sqlite3_busy_timeout(db_, 10'000);
        EXPECT_EQ(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK)
            << sqlite3_errmsg(db_);
    }
    ~file_lock() { sqlite3_close(db_); }
    file_lock(const file_lock&) = delete;
    file_lock& operator=(const file_lock&) = delete;

private:
    sqlite3* db_{nullptr};
};

struct RelaySeats : testing::Test {
    struct shop {
        pipeline_files files;
        writer outbox{files};
    };

    RelaySeats() { shops[0].files.make_stream("orders", 1); }

    [[nodiscard]] relay_settings settings(std::size_t count) const {
        auto made = shops[0].files.relay();
        made.lease = 1s;
        for (std::size_t i = 1; i < count; ++i)
            made.outboxes.push_back(shops[i].files.outbox);
        return made;
    }
    void put(std::size_t i) { shops[i].outbox.commit({numbered(++written, 8)}); }
    [[nodiscard]] bool drained(std::size_t i) {
        return support::eventually(patience, [&] { return shops[i].outbox.rows("outbox") == 0; });
    }
    static std::size_t led(const relay& by) {
        std::size_t count = 0;
        for (const auto& one : by.outboxes())
            count += one.leading ? 1 : 0;
        return count;
    }

    std::vector<shop> shops = std::vector<shop>(4);
    std::uint64_t written{0};
};

TEST_F(RelaySeats, OneRelayServesSeveralOutboxesAndTellsOfEach) {
    background<relay> one(settings(3));
    for (std::size_t i = 0; i < 3; ++i)
        put(i);
    for (std::size_t i = 0; i < 3; ++i)
        ASSERT_TRUE(drained(i));
    const auto ended = one.stop();
    ASSERT_TRUE(ended) << ended.error().detail;
    EXPECT_EQ(ended->deleted, 3U);
    const auto each = (*one).outboxes();
    ASSERT_EQ(each.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(each[i].address, shops[i].files.outbox);
        EXPECT_EQ(each[i].deleted, 1U);
    }
}

TEST_F(RelaySeats, AnOutboxOutOfReachDoesNotHoldUpTheOthers) {
    background<relay> one(settings(2));
    ASSERT_TRUE(support::eventually(patience, [&] { return led(*one) == 2; }));
    {
        const file_lock away(shops[1].files.folder.file("shop.db"));
        ASSERT_TRUE(support::eventually(patience, [&] { return !(*one).outboxes()[1].ready; }));
        for (int i = 0; i < 5; ++i) {
            put(0);
            ASSERT_TRUE(drained(0));
        }
        EXPECT_TRUE((*one).outboxes()[0].ready);
        EXPECT_FALSE((*one).status().ready) << "the sum";
        EXPECT_FALSE(one.ended());
    }
    put(1);
    EXPECT_TRUE(drained(1));
}

TEST_F(RelaySeats, AnOutboxWhoseLeadershipFailsForGoodDoesNotEndTheOthers) {
    {
        background<relay> before(settings(2));
        ASSERT_TRUE(support::eventually(patience, [&] { return led(*before) == 2; }));
        ASSERT_TRUE(before.stop());
    }
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(shops[1].files.folder.file("shop.db").c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, "UPDATE millrace_group SET format = 99", nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    ASSERT_EQ(sqlite3_changes(db), 1);
    sqlite3_close(db);

    background<relay> one(settings(2));
    ASSERT_TRUE(support::eventually(patience, [&] {
        const auto all = (*one).outboxes();
        return all.size() == 2 && all[1].last_error.has_value();
    }));
    EXPECT_EQ((*one).outboxes()[1].last_error->code, errc::wrong_version);
    put(0);
    EXPECT_TRUE(drained(0));
    EXPECT_FALSE(one.ended());
    EXPECT_FALSE((*one).outboxes()[1].leading);
    EXPECT_TRUE(one.stop());
}

TEST_F(RelaySeats, AnOutboxThatIsNamedTwiceOrMissingIsSaidAtTheStart) {
    auto twice = settings(1);
    twice.outboxes.push_back(twice.outbox);
    const auto refused = relay(twice).run();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::invalid_config);

    auto named = settings(2);
    named.outbox_id = "shop";
    named.lease = 0s;
    const auto impossible = relay(named).run();
    ASSERT_FALSE(impossible);
    EXPECT_NE(impossible.error().detail.find("outbox_id names one outbox"), std::string::npos);
    EXPECT_NE(impossible.error().detail.find("lease"), std::string::npos) << impossible.error().detail;

    auto missing = settings(1);
    missing.outboxes.push_back("sqlite:" + shops[0].files.folder.file("nowhere.db"));
    const auto nowhere = relay(missing).run();
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, errc::not_found);
}

TEST_F(RelaySeats, AFleetSharesOutboxesAndTakesOverWhatALeavingRelayLed) {
    auto fleet = settings(4);
    fleet.fleet_state = shops[0].files.state;
    background<relay> one(fleet);
    ASSERT_TRUE(support::eventually(patience, [&] { return led(*one) == 4; }));
    background<relay> two(fleet);
    ASSERT_TRUE(support::eventually(patience, [&] { return led(*one) == 2 && led(*two) == 2; }));
    std::vector<epoch> before;
    for (std::size_t i = 0; i < 4; ++i) {
        put(i);
        ASSERT_TRUE(drained(i));
        before.push_back(std::max((*one).outboxes()[i].epoch, (*two).outboxes()[i].epoch));
    }
    const auto first = one.stop();
    ASSERT_TRUE(first) << first.error().detail;
    ASSERT_TRUE(support::eventually(patience, [&] { return led(*two) == 4; }));
    for (std::size_t i = 0; i < 4; ++i) {
        put(i);
        ASSERT_TRUE(drained(i));
        EXPECT_GE((*two).outboxes()[i].epoch, before[i]) << "raised in the outbox's own database";
    }
}

TEST_F(RelaySeats, ALeaderWhoseSinkIsSilentGivesWayToOneThatWaitsAndDoesNotTakeItBack) {
    auto cut_off = settings(1);
    cut_off.leadership.yield_after = 1s;
    cut_off.sink = shops[1].files.sink;
    shops[1].files.make_stream("orders", 1);
    background<relay> one(cut_off);
    ASSERT_TRUE(support::eventually(patience, [&] { return led(*one) == 1; }));
    const file_lock away(shops[1].files.folder.file("streams.db"));
    put(0);
    std::this_thread::sleep_for(2s);
    EXPECT_EQ(led(*one), 1U) << "nobody waits";
    EXPECT_TRUE((*one).outboxes()[0].outbox) << "what a leader sees of its outbox";

    background<relay> two(settings(1));
    EXPECT_TRUE(drained(0));
    std::this_thread::sleep_for(3s);
    EXPECT_EQ(led(*two), 1U);
    EXPECT_EQ(led(*one), 0U);
    EXPECT_FALSE((*one).outboxes()[0].outbox) << "a backlog of long ago, for ever";
    EXPECT_TRUE((*two).outboxes()[0].outbox);
}

TEST_F(RelaySeats, ARelayThatDoesNotReachItsDatabaseStopsAtTheDeadlineAndGoesOnLater) {
    std::atomic<int> losses{0};
    auto alone = settings(1);
    alone.on_leadership = [&](const leadership_change& news) {
        losses += news.what == leadership_change::kind::lost ? 1 : 0;
    };
    background<relay> one(alone);
    ASSERT_TRUE(support::eventually(patience, [&] { return led(*one) == 1; }));
    {
        const file_lock away(shops[0].files.folder.file("shop.db"));
        ASSERT_TRUE(support::eventually(patience, [&] { return losses > 0; }));
        EXPECT_FALSE((*one).status().ready);
    }
    put(0);
    EXPECT_TRUE(drained(0));
    EXPECT_FALSE(one.ended());
}

TEST_F(RelaySeats, ARelayWhoseOutboxDeletesNothingIsNotReadyAndSaysWhyUntilItDoes) {
    background<relay> one(settings(1));
    ASSERT_TRUE(support::eventually(patience, [&] { return (*one).status().ready; }));
    shops[0].outbox.execute(
        "CREATE TRIGGER keep BEFORE DELETE ON outbox BEGIN SELECT RAISE(ABORT, 'nothing leaves'); END"
    );
    put(0);
    ASSERT_TRUE(support::eventually(patience, [&] { return !(*one).status().ready; }));
    EXPECT_NE((*one).status().not_ready.find("nothing leaves"), std::string::npos)
        << (*one).status().not_ready;
    EXPECT_EQ((*one).status().acknowledged, 1U);
    std::this_thread::sleep_for(7s);  // until the waits have grown
    EXPECT_FALSE((*one).status().ready);
    shops[0].outbox.execute("DROP TRIGGER keep");
    EXPECT_TRUE(support::eventually(8s, [&] { return shops[0].outbox.rows("outbox") == 0; }));
    EXPECT_TRUE(support::eventually(8s, [&] { return (*one).status().ready; }));
}

TEST_F(RelaySeats, ThroughputIsToldOfWhatWasAcknowledged) {
    std::mutex mutex;
    std::vector<relay_throughput> told;
    auto metered = settings(1);
    metered.throughput_every = 50ms;
    metered.on_throughput = [&](const relay_throughput& now) {
        const std::lock_guard lock(mutex);
        told.push_back(now);
    };
    background<relay> one(metered);
    put(0);
    ASSERT_TRUE(drained(0));
    const auto all = [&] {
        const std::lock_guard lock(mutex);
        std::uint64_t sum = 0;
        for (const auto& one_report : told)
            sum += one_report.acknowledged;
        return sum;
    };
    ASSERT_TRUE(support::eventually(patience, [&] { return all() == 1; }));
    const std::lock_guard lock(mutex);
    EXPECT_EQ(told.back().total, 1U);
    EXPECT_EQ(told.back().outbox, shops[0].files.outbox);
    EXPECT_GE(told.back().since_start, told.back().span);
}

}  // namespace
}  // namespace millrace::test
