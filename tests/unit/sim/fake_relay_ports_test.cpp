#include "fake_outbox.hpp"
#include "fake_sink.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::sim {
namespace {

event text(std::string value, std::optional<std::string> key = "k") {
    return {.topic = "t", .key = std::move(key), .value = std::move(value)};
}

struct FakeOutbox : testing::Test {
    scheduler world;
    rng random{7};
    faults plan;
    sim_host host{world, random};
    outbox_table table{world, true};
    fake_outbox source{table, world, host, random, plan};

    fetch_reply fetch(fetch_request request) {
        std::optional<fetch_reply> got;
        source.fetch(std::move(request), [&](result<fetch_reply> r) { got = std::move(r).value(); });
        world.run_for(100ms);
        return *got;
    }
};

TEST_F(FakeOutbox, AnEarlierIdBecomesVisibleAfterALaterOne) {
    const auto slow = table.begin();
    const auto early = table.draw(slow);
    table.insert(slow, early, text("a"));
    table.put(text("b"));
    const auto before = fetch({});
    ASSERT_EQ(before.ahead->rows().size(), 1U);
    EXPECT_EQ(before.ahead->rows()[0].id, row_id{2});
    EXPECT_EQ(before.writers, std::vector<std::uint64_t>{slow});
    table.commit(slow);
    const auto after = fetch({.after = row_id{2}, .gaps = {{early, early}}});
    EXPECT_TRUE(after.ahead->rows().empty());
    ASSERT_EQ(after.filled->rows().size(), 1U);
    EXPECT_EQ(after.filled->rows()[0].value, "a");
    EXPECT_TRUE(after.writers.empty());
}

TEST_F(FakeOutbox, AnIdDrawnAheadOfTheInsertShowsNoWriter) {
    const auto writer = table.begin();
    (void)table.draw(writer, true);
    EXPECT_TRUE(fetch({}).writers.empty());
}

TEST_F(FakeOutbox, BuriesOnlyUnderTheEpochOfTheLease) {
    table.owner_epoch = [] { return epoch{2}; };
    const auto id = table.put(text("a"));
    std::vector<errc> refused;
    for (const std::uint64_t e : {1U, 2U}) {
        source.bury(
            {.rows = {id},
             .lane = {"t", "k", {}},
             .when = bury_request::condition::park_lane,
             .table_identity = table.identity()},
            epoch{e},
            [&](const result<void>& r) {
                if (!r) refused.push_back(r.error().code);
            }
        );
        world.run_for(100ms);
    }
    EXPECT_EQ(refused, std::vector{errc::not_owner});
    EXPECT_EQ(table.dead().size(), 1U);
    EXPECT_TRUE(table.parked().contains({"t", "k", {}}));
    const auto generation = table.generation();
    EXPECT_EQ(table.replay({"t", "k", {}}), 1U);
    EXPECT_GT(table.generation(), generation);
    EXPECT_TRUE(table.rows().contains(id));
}

TEST_F(FakeOutbox, ADeleteDoesNotReachATableThatWasMadeAnew) {
    const auto id = table.put(text("a"));
    (void)fetch({});
    const auto old = table.identity();
    table.recreate();
    (void)fetch({});
    source.remove({{id, id}}, {{}, old}, epoch{1}, [](const result<std::uint64_t>&) {});
    world.run_for(100ms);
    EXPECT_TRUE(table.rows().contains(id));
}

struct FakeSink : FakeOutbox {
    sink_service service;
    fake_stream& stream = service.topic("t", world, random, {});
    fake_sink sink{service, world, host, random, plan, {.blamed_rows = 2}};

    FakeSink() {
        service.verdict = [](const outbox_row& row) -> std::optional<error> {
            if (*row.value != "bad") return std::nullopt;
            return error{errc::refused_record, retry_advice::never, false, "refused by the test"};
        };
    }
    std::vector<outgoing_row> rows(const std::vector<std::string>& values) {
        const auto after = table.rows().empty() ? row_id{0} : table.rows().rbegin()->first;
        for (const auto& value : values)
            table.put(text(value));
        bool more = false;
        const auto batch = table.read_ahead({.after = after}, more);
        std::vector<outgoing_row> out;
        for (const auto& row : batch->rows())
            out.push_back({&row, batch});
        return out;
    }
    std::string outcomes;
    void publish(channel where, std::vector<outgoing_row> what) {
        sink.publish(where, std::move(what), epoch{1}, [this](const result<publish_outcome>& r) {
            if (!r) outcomes += r.error().in_doubt ? "?" : "!";
            if (r && r->failures.empty()) outcomes += "+";
            if (r) {
                for (const auto& f : r->failures)
                    outcomes += f.why.code == errc::purged ? "p" : f.shared_blame ? "s" : "r";
            }
            outcomes += ".";
        });
    }
    [[nodiscard]] std::string published() const {
        std::string all;
        for (const auto& r : stream.find(shard_id{"shardId-000000000000"})->records)
            all += *r.data;
        return all;
    }
};

TEST_F(FakeSink, NothingBehindARefusedRowIsPublishedUntilReset) {
    publish(channel::main, rows({"a", "b", "c", "bad", "d"}));
    publish(channel::main, rows({"e"}));
    world.run_for(100ms);
    EXPECT_EQ(published(), "ab");
    EXPECT_EQ(outcomes, "ssp.p.");
    publish(channel::main, rows({"f"}));
    world.run_for(100ms);
    EXPECT_EQ(published(), "ab");
    bool reset = false;
    sink.reset_main([&](const result<void>& r) { reset = r.has_value(); });
    world.run_for(100ms);
    ASSERT_TRUE(reset);
    publish(channel::main, rows({"g"}));
    world.run_for(100ms);
    EXPECT_EQ(published(), "abg");
}

TEST_F(FakeSink, AProbeJudgesOneRowAndStopsNothing) {
    publish(channel::probe, rows({"bad"}));
    publish(channel::probe, rows({"a"}));
    publish(channel::main, rows({"b"}));
    world.run_for(100ms);
    EXPECT_EQ(published().size(), 2U);
    EXPECT_NE(outcomes.find("r."), std::string::npos);
}

TEST_F(FakeSink, ALostReplyLeavesThePublishedRowsInDoubtAndStopsMain) {
    sink.force("publish", fate::lost_reply);
    publish(channel::main, rows({"a"}));
    world.run_for(10ms);
    EXPECT_EQ(published(), "a");
    EXPECT_EQ(outcomes, "");
    world.run_for(1s);
    EXPECT_EQ(outcomes, "?.");
}

TEST_F(FakeSink, WhatAPausedClientHeldGoesOutWhenItWakes) {
    publish(channel::main, rows({"a"}));
    host.pause();
    world.run_for(1s);
    EXPECT_EQ(published(), "");
    host.resume();
    world.run_for(1s);
    EXPECT_EQ(published(), "a");
}

TEST_F(FakeSink, AResetWaitsForWhatIsOnItsWay) {
    sink.force("publish", fate::late);
    publish(channel::main, rows({"a"}));
    world.run_for(5ms);
    std::string at_reset = "-";
    sink.reset_main([&](const result<void>&) { at_reset = published(); });
    world.run_for(2s);
    EXPECT_EQ(at_reset, "a");
}

}  // namespace
}  // namespace millrace::sim
