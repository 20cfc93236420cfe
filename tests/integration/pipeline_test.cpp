#include "pipeline.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto patience = 30s;

struct Pipeline : testing::Test {
    Pipeline() { files.make_stream("orders", 4); }

    [[nodiscard]] bool received(std::size_t count) const {
        return support::eventually(patience, [&] { return seen.distinct() >= count; });
    }

    pipeline_files files;
    writer shop{files};
    receipts seen;
    noting_handler handler{seen};
};

TEST_F(Pipeline, TenThousandEventsReachTwoConsumersOnceAndInOrderPerKey) {
    constexpr std::uint64_t events = 10'000;
    background<relay> relaying(files.relay());
    background<consumer> first(files.consumer("first"), handler);
    background<consumer> second(files.consumer("second"), handler);
    for (std::uint64_t i = 0; i < events; i += 100) {
        std::vector<event> transaction;
        for (auto n = i; n < i + 100; ++n)
            transaction.push_back(numbered(n, 97));
        shop.commit(transaction);
    }
    EXPECT_TRUE(received(events));
    const auto a = first.stop();
    const auto b = second.stop();
    const auto r = relaying.stop();
    ASSERT_TRUE(a && b && r);
    EXPECT_EQ(seen.received(), events);
    EXPECT_EQ(seen.out_of_order(), 0U);
    EXPECT_EQ(r->deleted, events);
    EXPECT_EQ(shop.rows("outbox"), 0);
    EXPECT_EQ(a->records_acknowledged + b->records_acknowledged, events);
    EXPECT_EQ(a->records_at_risk + b->records_at_risk, 0U) << "checkpoints are written before the end";
}

TEST_F(Pipeline, ARestartedConsumerGoesOnAfterItsCheckpoint) {
    files.put({numbered(1, 3), numbered(2, 3)});
    auto settings = files.consumer("w");
    settings.idle_exit = 0s;
    ASSERT_TRUE(consumer(settings, handler).run());
    files.put({numbered(3, 3)});
    const auto again = consumer(settings, handler).run();
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_EQ(again->records_read, 1U);
    EXPECT_EQ(seen.received(), 3U);
}

TEST_F(Pipeline, TheFirstEventIsDeliveredWithoutWaitingForATick) {
    shop.commit({numbered(1, 1)});
    const auto begin = clock::now();
    background<relay> relaying(files.relay());
    background<consumer> consuming(files.consumer("w"), handler);
    EXPECT_TRUE(received(1));
    const auto took = clock::now() - begin;
    RecordProperty("first_event_ms", static_cast<int>(took / 1ms));
    EXPECT_LT(took, 1s) << "150 ms on a machine that has nothing else to do";
}

TEST_F(Pipeline, AProcessEndsAtOnceWhenNothingIsInFlight) {
    background<relay> relaying(files.relay());
    background<consumer> consuming(files.consumer("w"), handler);
    shop.commit({numbered(1, 1)});
    EXPECT_TRUE(received(1));
    const auto begin = clock::now();
    EXPECT_TRUE(relaying.stop());
    EXPECT_TRUE(consuming.stop());
    EXPECT_LT(clock::now() - begin, 2s);
}

TEST_F(Pipeline, ARelayThatRunsOnceEndsWhenNothingIsLeft) {
    shop.commit({numbered(1, 2), numbered(2, 2), numbered(3, 2)});
    auto settings = files.relay();
    settings.once = true;
    const auto outcome = relay(settings).run();
    ASSERT_TRUE(outcome) << outcome.error().detail;
    EXPECT_EQ(outcome->deleted, 3U);
    EXPECT_EQ(shop.rows("outbox"), 0);
    EXPECT_TRUE(relay(settings).run()) << "nothing to do is no error";
}

TEST_F(Pipeline, OfTwoRelaysOnOneOutboxOneWaitsAndTakesOver) {
    std::atomic<int> leading{0};
    std::atomic<int> most{0};
    const auto settings = [&] {
        auto made = files.relay();
        made.on_leadership = [&](const leadership_change& news) {
            const int now = news.what == leadership_change::kind::acquired ? ++leading : --leading;
            if (now > most) most = now;
        };
        return made;
    };
    background<relay> one(settings());
    ASSERT_TRUE(support::eventually(patience, [&] { return (*one).status().leading; }));
    background<relay> two(settings());
    shop.commit({numbered(1, 1)});
    ASSERT_TRUE(support::eventually(patience, [&] { return shop.rows("outbox") == 0; }));
    EXPECT_FALSE((*two).status().leading);
    const auto first = one.stop();
    ASSERT_TRUE(first) << first.error().detail;
    ASSERT_TRUE(support::eventually(patience, [&] { return (*two).status().leading; }));
    shop.commit({numbered(2, 1)});
    ASSERT_TRUE(support::eventually(patience, [&] { return shop.rows("outbox") == 0; }));
    const auto second = two.stop();
    ASSERT_TRUE(second) << second.error().detail;
    EXPECT_EQ(most, 1);
    EXPECT_EQ(first->deleted + second->deleted, 2U);
    EXPECT_GT(second->epoch, first->epoch);
}

TEST_F(Pipeline, ADoubledWorkerIdEndsTheNewcomerAndNamesBoth) {
    auto settings = files.consumer("twin");
    settings.lease = 1s;
    background<consumer> first(settings, handler);
    ASSERT_TRUE(support::eventually(patience, [&] { return (*first).status().shards == 4; }));
    const auto second = consumer(settings, handler).run();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, errc::worker_id_taken);
    EXPECT_NE(second.error().detail.find("twin"), std::string::npos) << second.error().detail;
    EXPECT_FALSE(first.ended());
    EXPECT_TRUE(first.stop());
}

TEST_F(Pipeline, WhatIsMissingIsSaidAtTheStartAndWithTheUrlAsGiven) {
    auto relaying = files.relay();
    relaying.outbox = "sqlite:" + files.folder.file("nowhere.db");
    const auto no_outbox = relay(relaying).run();
    ASSERT_FALSE(no_outbox);
    EXPECT_EQ(no_outbox.error().code, errc::not_found);
    EXPECT_NE(no_outbox.error().detail.find(relaying.outbox), std::string::npos) << no_outbox.error().detail;

    auto consuming = files.consumer("w");
    consuming.stream = files.sink + "/oders";
    const auto no_stream = consumer(consuming, handler).run();
    ASSERT_FALSE(no_stream);
    EXPECT_EQ(no_stream.error().code, errc::not_found);
    EXPECT_NE(no_stream.error().detail.find("oders"), std::string::npos) << no_stream.error().detail;
}

TEST_F(Pipeline, AllFaultsOfTheSettingsAreReportedTogether) {
    auto settings = files.consumer("w");
    settings.stream = "kafka://broker/orders";
    settings.state = "sqlit:state.db";
    settings.group = "";
    const auto refused = consumer(settings, handler).run();
    ASSERT_FALSE(refused);
    for (const auto* part : {"kafka://broker/orders", "sqlit:state.db", "group"})
        EXPECT_NE(refused.error().detail.find(part), std::string::npos) << refused.error().detail;
}

/// Refuses one value for good.
class refusing_handler final : public noting_handler {
public:
    using noting_handler::noting_handler;
    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        for (std::size_t i = 0; i < batch->records().size(); ++i) {
            if (batch->records()[i].data != "2") continue;
            if (i > 0) how.acknowledge.up_to(i - 1);
            return fail(errc::handler_failed, "no such customer");
        }
        return noting_handler::handle(batch, how);
    }
};

/// Refuses what is large, at length.
class refusing_large_handler final : public record_handler {
public:
    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        for (std::size_t i = 0; i < batch->records().size(); ++i) {
            if (batch->records()[i].data.value().size() < 1'000'000) continue;
            if (i > 0) how.acknowledge.up_to(i - 1);
            return fail(errc::handler_failed, std::string(2'000'000, 'e'));
        }
        return handled::all;
    }
};

TEST_F(Pipeline, ALargeRecordIsGivenUpLikeAnyOther) {
    files.make_stream("dead", 1);
    auto large = numbered(2, 1);
    large.value = std::string(1'500'000, 'v');
    files.put({numbered(1, 1), large, numbered(3, 1)});
    refusing_large_handler refusing;
    for (const auto& [group, target] :
         {std::pair{"to-outbox", files.outbox}, std::pair{"to-stream", files.sink + "/dead"}}) {
        auto settings = files.consumer("w");
        settings.group = group;
        settings.reading.on_failure = failure_policy::dead_letter;
        settings.reading.dead_letter_after = 1;
        settings.dead_letters = target;
        settings.idle_exit = 0s;
        background<consumer> consuming(settings, refusing);
        const auto buried = [&] { return (*consuming).status().records_dead_lettered > 0; };
        EXPECT_TRUE(support::eventually(patience, buried)) << "no room for it in " << target;
        const auto outcome = buried() ? consuming.wait() : consuming.stop();
        ASSERT_TRUE(outcome) << outcome.error().detail;
        EXPECT_EQ(outcome->records_acknowledged, 3U);
    }
    EXPECT_EQ(shop.rows("outbox WHERE length(value) = 1500000"), 1);
}

TEST_F(Pipeline, RecordsThatAreGivenUpGoToAnOutboxOrAStreamAndTheRestGoesOn) {
    files.make_stream("dead", 1);
    files.put({numbered(1, 1), numbered(2, 1), numbered(3, 1)});
    refusing_handler refusing(seen);
    for (const auto& [group, target] :
         {std::pair{"to-outbox", files.outbox}, std::pair{"to-stream", files.sink + "/dead"}}) {
        auto settings = files.consumer("w");
        settings.group = group;
        settings.reading.on_failure = failure_policy::dead_letter;
        settings.reading.dead_letter_after = 2;
        settings.reading.retry_min = 1ms;
        settings.dead_letters = target;
        settings.idle_exit = 0s;
        const auto outcome = consumer(settings, refusing).run();
        ASSERT_TRUE(outcome) << outcome.error().detail;
        EXPECT_EQ(outcome->records_dead_lettered, 1U);
        EXPECT_EQ(outcome->records_at_risk, 0U);
    }
    EXPECT_EQ(shop.rows("outbox"), 1);
    auto admin = local_admin::open(files.folder.file("streams.db"));
    ASSERT_TRUE(admin);
    EXPECT_EQ(admin->describe("dead")->shards.at(0).records, 1U);
}

/// Returns at once; three threads acknowledge each batch later, record by record and out of order.
class late_handler final : public record_handler {
public:
    explicit late_handler(receipts& to) : to_(to) {}
    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        for (const auto& r : batch->records())
            to_.note(r);
        const std::lock_guard lock(mutex_);
        for (std::size_t part = 0; part < 3; ++part) {
            threads_.emplace_back([batch, acknowledge = how.acknowledge, part] {
                for (auto i = batch->records().size(); i-- > 0;) {
                    if (i % 3 == part) acknowledge.one(i);
                }
            });
        }
        return handled::later;
    }

private:
    receipts& to_;
    std::mutex mutex_;
    std::vector<std::jthread> threads_;
};

TEST_F(Pipeline, AcknowledgementsFromManyThreadsOutOfOrderReachTheCheckpoint) {
    std::vector<event> events;
    for (std::uint64_t n = 0; n < 3'000; ++n)
        events.push_back(numbered(n, 50));
    files.put(events);
    late_handler late(seen);
    auto settings = files.consumer("w");
    settings.idle_exit = 0s;
    const auto outcome = consumer(settings, late).run();
    ASSERT_TRUE(outcome) << outcome.error().detail;
    EXPECT_EQ(outcome->records_acknowledged, 3'000U);
    const auto again = consumer(settings, late).run();
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_EQ(again->records_read, 0U) << "everything was in the checkpoint";
}

TEST_F(Pipeline, AbortEndsTheRunWithTheHandlersReason) {
    files.put({numbered(1, 1)});
    background<consumer> consuming(files.consumer("w"), handler);
    ASSERT_TRUE(received(1));
    (*consuming).abort({errc::unavailable, {}, false, "standard output is closed"});
    const auto outcome = consuming.wait();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().detail, "standard output is closed");
}

}  // namespace
}  // namespace millrace::test
