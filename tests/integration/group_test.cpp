#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <millrace/group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 20s;

struct GroupAlone : testing::Test {
    [[nodiscard]] group_settings settings(const std::string& worker) const {
        group_settings made;
        made.name = "mail";
        made.state = "sqlite:" + folder.file("state.db");
        made.resources = {"c", "a", "b"};
        made.worker = worker_id(worker);
        return made;
    }
    static group join(group_settings with) {
        auto joined = group::join(std::move(with));
        EXPECT_TRUE(joined) << joined.error().detail;
        return std::move(*joined);
    }

    support::temporary_folder folder;
};

TEST_F(GroupAlone, OneWorkerAcquiresEverythingOnceAndFinishesIt) {
    auto alone = join(settings("w"));
    const auto place = alone.members();
    ASSERT_TRUE(place);
    EXPECT_EQ(place->index, 0U);
    EXPECT_EQ(place->total, 1U);
    std::set<std::string> acquired;
    for (int i = 0; i < 3; ++i) {
        const auto lease = alone.acquire(patience);
        ASSERT_TRUE(lease) << lease.error().detail;
        EXPECT_TRUE(lease->valid());
        EXPECT_FALSE(lease->begin());
        acquired.insert(lease->resource());
        EXPECT_EQ(alone.finished(lease->resource()), false);
        EXPECT_TRUE(lease->done());
        EXPECT_EQ(alone.finished(lease->resource()), true);
        EXPECT_FALSE(lease->valid());
        EXPECT_EQ(lease->advance(9).error().code, errc::already_finished);
    }
    EXPECT_EQ(acquired, (std::set<std::string>{"a", "b", "c"}));
    EXPECT_EQ(alone.acquire(patience).error().code, errc::already_finished);
    EXPECT_EQ(alone.acquire("a", patience).error().code, errc::already_finished);
    EXPECT_TRUE(alone.leave());
    EXPECT_EQ(alone.acquire(patience).error().code, errc::cancelled);
}

TEST_F(GroupAlone, ALeaseThatWasGivenBackStaysSoAlsoWhenItsWorkerHasTheResourceAgain) {
    auto alone = join(settings("w"));
    const auto first = alone.acquire("a", patience);
    ASSERT_TRUE(first);
    ASSERT_TRUE(first->release());
    const auto second = alone.acquire("a", patience);
    ASSERT_TRUE(second);
    EXPECT_EQ(first->release().error().code, errc::already_released);
    EXPECT_EQ(first->persist().error().code, errc::already_released);
    EXPECT_EQ(first->advance(1).error().code, errc::already_released);
    EXPECT_TRUE(second->advance(1));
    EXPECT_TRUE(second->release());
}

TEST_F(GroupAlone, TheNextOwnerBeginsWhereTheLastOneStoppedUnderAHigherEpoch) {
    epoch before;
    {
        auto first = join(settings("first"));
        const auto lease = first.acquire("a", patience);
        ASSERT_TRUE(lease) << lease.error().detail;
        before = lease->epoch();
        ASSERT_TRUE(lease->advance(41));
        ASSERT_TRUE(lease->persist());
        ASSERT_TRUE(lease->advance(42));
        EXPECT_EQ(lease->advance(7).error().code, errc::invalid_argument) << "it never goes back";
        ASSERT_TRUE(first.leave());
        EXPECT_EQ(lease->advance(43).error().code, errc::cancelled);
        EXPECT_TRUE(lease->stop().stop_requested());
    }
    auto second = join(settings("second"));
    const auto lease = second.acquire("a", patience);
    ASSERT_TRUE(lease) << lease.error().detail;
    ASSERT_TRUE(lease->begin());
    EXPECT_EQ(lease->begin()->sequence, sequence_number{42});
    EXPECT_GT(lease->epoch(), before);
}

TEST_F(GroupAlone, ANewcomerGetsItsShareAfterTheOwnerWasAskedAndReleased) {
    auto first = join(settings("first"));
    std::vector<lease> held;
    for (int i = 0; i < 3; ++i) {
        auto lease = first.acquire(patience);
        ASSERT_TRUE(lease) << lease.error().detail;
        held.push_back(std::move(*lease));
    }
    auto second = join(settings("second"));
    const auto asked = [&] {
        return std::find_if(held.begin(), held.end(), [](const lease& l) {
            return l.stop().stop_requested();
        });
    };
    ASSERT_TRUE(support::eventually(patience, [&] { return asked() != held.end(); }));
    const auto given = *asked();
    EXPECT_EQ(second.acquire(given.resource(), 10ms).error().code, errc::not_owner)
        << "not before its release";
    ASSERT_TRUE(given.release());
    EXPECT_EQ(given.release().error().code, errc::already_released);
    EXPECT_EQ(given.advance(1).error().code, errc::already_released);
    const auto taken = second.acquire(given.resource(), patience);
    ASSERT_TRUE(taken) << taken.error().detail;
    EXPECT_GT(taken->epoch(), given.epoch());
    EXPECT_FALSE(given.valid());
}

TEST_F(GroupAlone, IsLeftAndDestroyedFromWithinACallbackOfAStopToken) {
    std::optional<group> first(join(settings("first")));
    std::vector<lease> held;
    for (int i = 0; i < 3; ++i) {
        auto lease = first->acquire(patience);
        ASSERT_TRUE(lease) << lease.error().detail;
        held.push_back(std::move(*lease));
    }
    std::optional<result<void>> left;
    std::atomic<bool> done{false};
    const auto leave = [&] {
        if (left) return;  // the leaving itself stops the others
        left.emplace();
        left = first->leave();
        first.reset();
        done = true;
    };
    std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> callbacks;
    for (const auto& lease : held)
        callbacks.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(lease.stop(), leave));
    auto second = join(settings("second"));
    ASSERT_TRUE(support::eventually(patience, [&] { return done.load(); }));
    ASSERT_FALSE(*left);
    EXPECT_EQ(left->error().code, errc::invalid_argument);
    for (int i = 0; i < 3; ++i) {
        const auto lease = second.acquire(patience);
        EXPECT_TRUE(lease) << lease.error().detail;
    }
}

TEST_F(GroupAlone, SaysWhoHoldsAResourceAndForHowLong) {
    auto with = settings("holder");
    with.resources = {"a", "b"};
    auto first = join(with);
    const auto one = first.acquire(patience);
    const auto two = first.acquire(patience);
    ASSERT_TRUE(one && two);
    with.worker = worker_id("newcomer");
    auto second = join(with);
    std::optional<error> refused;
    ASSERT_TRUE(support::eventually(patience, [&] {
        for (const auto* const resource : {"a", "b"}) {
            const auto tried = second.acquire(resource, 50ms);
            if (!tried && tried.error().code == errc::not_owner) refused = tried.error();
        }
        return refused.has_value();
    }));
    EXPECT_THAT(
        refused->detail, testing::ContainsRegex("is held by worker \"holder\" for [0-9]+\\.[0-9] s more")
    );
}

TEST_F(GroupAlone, TypedErrorsForWhatCannotBeAcquired) {
    auto alone = join(settings("w"));
    EXPECT_EQ(alone.acquire("z", 1ms).error().code, errc::not_found);
    EXPECT_EQ(alone.finished("z").error().code, errc::not_found);
    const auto mine = alone.acquire("a", patience);
    ASSERT_TRUE(mine);
    EXPECT_EQ(alone.acquire("a", 10ms).error().code, errc::conflict);
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_EQ(alone.acquire("a", patience, stopped.get_token()).error().code, errc::cancelled);
}

TEST_F(GroupAlone, FaultsOfTheSettingsAreRefusedBeforeAnythingIsWritten) {
    auto twice = settings("w");
    twice.resources = {"a", "b", "a"};
    EXPECT_EQ(group::join(twice).error().code, errc::invalid_argument);
    auto none = settings("w");
    none.resources.clear();
    EXPECT_EQ(group::join(none).error().code, errc::invalid_argument);
    auto elsewhere = settings("w");
    elsewhere.state = "dynamodb:table";
    EXPECT_NE(group::join(elsewhere).error().detail.find("dynamodb:table"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder.file("state.db")));
}

TEST_F(GroupAlone, IsUsedFromManyThreadsAtOnce) {
    auto many = settings("w");
    many.resources.clear();
    for (int i = 0; i < 40; ++i)
        many.resources.push_back("r" + std::to_string(i));
    auto alone = join(std::move(many));
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&] {
                while (const auto lease = alone.acquire(patience)) {
                    EXPECT_TRUE(lease->advance(1));
                    EXPECT_TRUE(lease->done());
                }
            });
        }
    }
    EXPECT_EQ(alone.acquire(patience).error().code, errc::already_finished);
}

}  // namespace
}  // namespace millrace::test
