// Tests are scripts: at this time this happened, and the cache did that.
#include "schema_cache.hpp"

#include "unit/schema_registry/cache_script.hpp"

#include <set>

#include <gmock/gmock.h>

namespace millrace::registry {
namespace {

using namespace std::chrono_literals;
using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto v1 = schema_choice::version(1);

/// With version 1 of "a" known since 0 s, as its latest one.
struct KnownLatest : testing::Test {
    KnownLatest() {
        on.want("a", 1);
        (void)on.did();
        on.answer("a latest", schema(7, 1));
        (void)on.did();
    }
    cache_script on;
};

TEST(SchemaCache, AsksOnceHoweverManyWait) {
    cache_script on;
    for (schema_cache::waiter who = 1; who <= 3; ++who)
        on.want("a", who);
    EXPECT_EQ(on.find("a"), "not yet");
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    on.answer("a latest", schema(7, 1));
    EXPECT_THAT(on.did(), ElementsAre("tell 1: 7", "tell 2: 7", "tell 3: 7"));
    EXPECT_EQ(on.find("a"), "7");
    on.want("a", 4);
    EXPECT_THAT(on.did(), ElementsAre("tell 4: 7"));
}

TEST(SchemaCache, AsksForNothingThatNobodyWants) {
    cache_script on;
    EXPECT_EQ(on.find("a"), "not yet");
    EXPECT_THAT(on.did(), IsEmpty());
    EXPECT_EQ(on.cache.counters().entries, 0U);
    EXPECT_EQ(on.cache.wake_at(), std::nullopt);
}

TEST(SchemaCache, TellsVersionsIdsAndTextsOfASubjectApart) {
    cache_script on;
    on.want("a", 1);
    on.want("a", 2, v1);
    on.want("a", 3, schema_choice::version(2));
    on.want("", 4, schema_choice::id(1));
    on.want("a", 5, schema_choice::text(1));
    on.want("b", 6, v1);
    EXPECT_THAT(
        on.did(), ElementsAre("ask a latest", "ask a v1", "ask a v2", "ask  id1", "ask a text1", "ask b v1")
    );
}

TEST(SchemaCache, KeepsVersionsIdsAndTextsForGood) {
    cache_script on;
    on.want("a", 1, v1);
    on.want("", 2, schema_choice::id(8));
    on.want("a", 3, schema_choice::text(0));
    (void)on.did();
    on.answer("a v1", schema(7, 1));
    on.answer(" id8", schema(8, 0));
    on.answer("a text0", schema(9, 0));
    (void)on.did();
    on.at(10'000h);
    EXPECT_EQ(on.find("a", v1), "7");
    EXPECT_EQ(on.find("", schema_choice::id(8)), "8");
    EXPECT_EQ(on.find("a", schema_choice::text(0)), "9");
    EXPECT_THAT(on.did(), IsEmpty());
}

TEST_F(KnownLatest, IsUsedForItsTimeAndThenAskedForAnew) {
    on.at(44'999ms);
    EXPECT_EQ(on.find("a"), "7");
    EXPECT_THAT(on.did(), IsEmpty());
    on.at(60s);
    EXPECT_EQ(on.find("a"), "not yet");
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    on.want("a", 2);
    EXPECT_THAT(on.did(), IsEmpty());
    on.answer("a latest", schema(9, 2));
    EXPECT_THAT(on.did(), ElementsAre("tell 2: 9"));
    EXPECT_EQ(on.find("a"), "9");
}

TEST_F(KnownLatest, IsAskedForAheadWhileItIsUsed) {
    on.at(45s);
    EXPECT_EQ(on.find("a"), "7");
    EXPECT_EQ(on.find("a"), "7");
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    on.at(46s);
    on.answer("a latest", schema(9, 2));
    EXPECT_EQ(on.find("a"), "9");
    on.at(90s);
    EXPECT_EQ(on.find("a"), "9");
    EXPECT_THAT(on.did(), IsEmpty());
}

TEST_F(KnownLatest, StaysTheSameObjectWhileTheSchemaIsTheSame) {
    const auto before = on.cache.find(on.now, "a", {}).schema;
    on.at(50s);
    (void)on.find("a");
    (void)on.did();
    on.answer("a latest", schema(7, 1));
    on.at(100s);
    EXPECT_EQ(on.cache.find(on.now, "a", {}).schema, before);
}

TEST_F(KnownLatest, GoesOnBeingUsedWhileTheRegistryIsDown) {
    on.at(60s);
    EXPECT_EQ(on.find("a"), "not yet");  // it may have changed: one attempt is waited for
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    on.want("a", 2);
    on.fail("a latest", failure_kind::unreachable);
    EXPECT_EQ(on.find("a"), "7 stale");
    EXPECT_EQ(on.find("a"), "7 stale");
    on.want("a", 3);
    EXPECT_THAT(on.did(), ElementsAre("trouble: unreachable", "stale: a", "tell 2: 7", "tell 3: 7"));
    EXPECT_EQ(on.cache.counters().stale_uses, 4U);

    on.at(10h);
    EXPECT_EQ(on.find("a"), "7 stale");
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    on.answer("a latest", schema(9, 2));
    EXPECT_THAT(on.did(), ElementsAre("trouble ended after 35940000"));
    EXPECT_EQ(on.find("a"), "9");
    EXPECT_EQ(on.cache.trouble(), nullptr);
}

TEST_F(KnownLatest, NeedNotBeWaitedForOnceTheRegistryIsKnownToBeDown) {
    on.at(60s);
    on.want("b", 2);
    on.want("a", 3);
    EXPECT_THAT(on.did(), ElementsAre("ask b latest", "ask a latest"));
    on.fail("b latest", failure_kind::out_of_order);
    EXPECT_EQ(on.find("a"), "7 stale");
    EXPECT_THAT(on.did(), ElementsAre("trouble: out_of_order", "stale: a", "tell 3: 7"));
}

TEST_F(KnownLatest, IsNotUsedAnyMoreOnceTheRegistrySaysThatThereIsNone) {
    on.at(60s);
    (void)on.find("a");
    (void)on.did();
    on.fail("a latest", failure_kind::no_such_subject);
    EXPECT_EQ(on.find("a"), "no_such_subject");
    EXPECT_EQ(on.cache.trouble(), nullptr);
}

TEST(SchemaCache, AsksAgainInTroubleForAsLongAsAnybodyWaits) {
    cache_script on;
    on.want("a", 1);
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    std::set<milliseconds> pauses;
    for (const auto ceiling : {100ms, 200ms, 400ms, 800ms, 1'600ms, 1'600ms, 1'600ms}) {
        on.fail("a latest", failure_kind::unreachable);
        EXPECT_EQ(on.find("a"), "unreachable");
        (void)on.did();
        const auto pause = on.sleep();
        EXPECT_LE(pause, ceiling);
        pauses.insert(pause);
        EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    }
    EXPECT_GE(pauses.size(), 6U) << "jitter";
    on.answer("a latest", schema(7, 1));
    EXPECT_THAT(on.did(), ElementsAre(HasSubstr("trouble ended"), "tell 1: 7"));
    EXPECT_EQ(on.cache.wake_at(), std::nullopt);
}

TEST(SchemaCache, ReportsEachKindOfTroubleOnce) {
    cache_script on;
    on.want("a", 1);
    lines all;
    for (const auto kind :
         {failure_kind::unreachable,
          failure_kind::unreachable,
          failure_kind::unauthorized,
          failure_kind::unauthorized,
          failure_kind::not_a_registry}) {
        (void)on.did();
        on.fail("a latest", kind);
        for (const auto& line : on.did())
            if (line.starts_with("trouble")) all.push_back(line);
        (void)on.sleep();
    }
    EXPECT_THAT(all, ElementsAre("trouble: unreachable", "trouble: unauthorized", "trouble: not_a_registry"));
}

TEST(SchemaCache, TellsARefusalAndAsksAgainOnlyAfterAPause) {
    cache_script on;
    on.want("a", 1);
    on.want("a", 2);
    (void)on.did();
    on.fail("a latest", failure_kind::no_such_subject);
    EXPECT_THAT(on.did(), ElementsAre("tell 1: no_such_subject", "tell 2: no_such_subject"));
    EXPECT_EQ(on.cache.wake_at(), std::nullopt) << "nobody waits";
    EXPECT_EQ(on.find("a"), "no_such_subject");

    on.want("a", 3);
    EXPECT_THAT(on.did(), IsEmpty());
    EXPECT_LE(on.sleep(), 100ms);
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    on.answer("a latest", schema(7, 1));
    EXPECT_THAT(on.did(), ElementsAre("tell 3: 7"));
}

TEST(SchemaCache, ForgetsARefusalAfterItsPause) {
    cache_script on;
    on.want("a", 1);
    (void)on.did();
    on.fail("a latest", failure_kind::no_such_subject);
    (void)on.did();
    on.at(100ms);
    EXPECT_EQ(on.find("a"), "not yet");
    on.want("a", 2);
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
}

TEST(SchemaCache, HoldsBackARefusedSubjectAndNoOther) {
    cache_script on;
    on.want("a", 1);
    (void)on.did();
    on.fail("a latest", failure_kind::invalid_schema);
    on.want("b", 2);
    EXPECT_THAT(on.did(), ElementsAre("tell 1: invalid_schema", "ask b latest"));
}

TEST(SchemaCache, AsksForSoManyAtOnceAndForOneInTrouble) {
    auto options = patient();
    options.requests_max = 3;
    cache_script on(options);
    for (schema_cache::waiter who = 1; who <= 5; ++who)
        on.want("s" + std::to_string(who), who);
    EXPECT_THAT(on.did(), ElementsAre("ask s1 latest", "ask s2 latest", "ask s3 latest"));
    on.fail("s1 latest", failure_kind::out_of_order);
    on.fail("s2 latest", failure_kind::out_of_order);
    on.fail("s3 latest", failure_kind::out_of_order);
    EXPECT_THAT(on.did(), ElementsAre("trouble: out_of_order"));
    (void)on.sleep();
    EXPECT_THAT(on.did(), ElementsAre("ask s4 latest"));
    on.answer("s4 latest", schema(4, 1));
    EXPECT_THAT(on.did(), testing::Contains("ask s5 latest"));
}

TEST(SchemaCache, AsksAtOnceWhenTheRegistryCanBeReachedAgain) {
    int waited = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        cache_script on;
        on.random = seed;
        on.want("a", 1);
        for (int i = 0; i < 6; ++i) {
            (void)on.did();
            on.fail("a latest", failure_kind::unreachable);
            if (i < 5) (void)on.sleep();
        }
        on.want("b", 2);
        (void)on.did();
        (void)on.sleep();
        if (on.did() != lines{"ask b latest"}) continue;  // a has its turn already
        ++waited;
        on.answer("b latest", schema(7, 1));
        EXPECT_THAT(on.did(), ElementsAre(HasSubstr("trouble ended"), "tell 2: 7", "ask a latest"));
    }
    EXPECT_GE(waited, 5);
}

TEST(SchemaCache, AsksOnceAlsoWhenItWasLateToAskAgain) {
    cache_script on;
    on.want("a", 1);
    (void)on.did();
    on.fail("a latest", failure_kind::unreachable);
    (void)on.did();
    on.now += 1s;  // and nobody woke it
    on.want("a", 2);
    EXPECT_THAT(on.did(), ElementsAre("ask a latest"));
    on.answer("a latest", schema(7, 1));
    EXPECT_THAT(on.did(), ElementsAre("trouble ended after 1000", "tell 1: 7", "tell 2: 7"));
    on.at(2s);
    EXPECT_THAT(on.did(), IsEmpty());
}

TEST(SchemaCache, GivesTheRegistryThePauseThatItAsksForUpToALimit) {
    auto options = patient();
    options.retry_after_max = 20s;
    cache_script on(options);
    on.want("a", 1);
    (void)on.did();
    on.fail("a latest", failure_kind::throttled, 7s);
    on.want("b", 2);
    EXPECT_THAT(on.did(), ElementsAre("trouble: throttled"));
    EXPECT_EQ(on.sleep(), 7s);
    const auto next = on.did();
    ASSERT_EQ(next.size(), 1U);
    on.fail(next.front().substr(4), failure_kind::throttled, 1h);
    EXPECT_EQ(on.sleep(), 20s);
}

TEST(SchemaCache, RefusesToLetMoreWaitThanItsLimit) {
    auto options = patient();
    options.waiters_max = 2;
    cache_script on(options);
    for (schema_cache::waiter who = 1; who <= 3; ++who)
        on.want("a", who);
    EXPECT_THAT(on.did(), ElementsAre("ask a latest", "tell 3: cache_full"));
    on.answer("a latest", schema(7, 1));
    EXPECT_EQ(on.cache.counters().waiters, 0U);
    on.want("b", 4);
    EXPECT_THAT(on.did(), ElementsAre("tell 1: 7", "tell 2: 7", "ask b latest"));
}

TEST(SchemaCache, DropsWhatWasUsedLongestAgo) {
    auto options = patient();
    options.entries_max = 2;
    cache_script on(options);
    for (const std::string subject : {"a", "b"}) {
        on.want(subject, static_cast<schema_cache::waiter>(subject[0]), v1);
        (void)on.did();
        on.answer(subject + " v1", schema(static_cast<std::uint32_t>(subject[0]), 1));
    }
    EXPECT_EQ(on.find("a", v1), "97");
    on.want("c", 3, v1);
    EXPECT_EQ(on.find("a", v1), "97");
    EXPECT_EQ(on.find("b", v1), "not yet");
    EXPECT_EQ(on.cache.counters().entries, 2U);
    EXPECT_EQ(on.cache.counters().dropped, 1U);
}

TEST(SchemaCache, DropsNothingThatIsWaitedFor) {
    auto options = patient();
    options.entries_max = 2;
    cache_script on(options);
    on.want("a", 1);
    on.want("b", 2);
    on.want("c", 3);
    EXPECT_THAT(on.did(), ElementsAre("ask a latest", "ask b latest", "tell 3: cache_full"));
    on.fail("a latest", failure_kind::no_such_subject);
    on.want("c", 4);
    EXPECT_THAT(on.did(), ElementsAre("tell 1: no_such_subject", "ask c latest"));
}

TEST(SchemaCache, KeepsTenThousandSubjectsWithinItsBudget) {
    auto options = patient();
    options.bytes_max = std::size_t{16} << 20;
    cache_script on(options);
    for (std::uint32_t n = 1; n <= 10'000; ++n) {
        const auto subject = "orders." + std::to_string(n) + "-value";
        on.want(subject, n);
        (void)on.did();
        on.answer(subject + " latest", schema(n, 1, {}, 4'000));
        ASSERT_LE(on.cache.counters().bytes, options.bytes_max) << n;
    }
    EXPECT_GT(on.cache.counters().entries, 3'000U);
    EXPECT_EQ(on.cache.counters().entries + on.cache.counters().dropped, 10'000U);
    EXPECT_EQ(on.find("orders.10000-value"), "10000");
}

TEST(SchemaCache, CountsASchemaThatManySubjectsShareOnce) {
    cache_script on;
    for (std::uint32_t n = 1; n <= 100; ++n) {
        const auto subject = std::to_string(n);
        on.want(subject, n);
        (void)on.did();
        on.answer(subject + " latest", schema(7, 1, {}, 100'000));
    }
    EXPECT_LT(on.cache.counters().bytes, 100'000U + 100 * 2'000U);
    const auto one = on.cache.find(on.now, "1", {}).schema;
    const auto other = on.cache.find(on.now, "100", {}).schema;
    EXPECT_EQ(one->self->schema, other->self->schema);
}

TEST(SchemaCache, DoesNotMixUpTheSameIdOfTwoContexts) {
    cache_script on;
    on.want("a", 1);
    on.want("b", 2);
    (void)on.did();
    on.answer("a latest", schema(7, 1, {}, 10));
    on.answer("b latest", schema(7, 1, {}, 11));
    EXPECT_EQ(on.cache.find(on.now, "a", {}).schema->self->schema->text.size(), 10U);
    EXPECT_EQ(on.cache.find(on.now, "b", {}).schema->self->schema->text.size(), 11U);
}

TEST(SchemaCacheOptions, NameTheFieldThatIsWrong) {
    const auto why = [](auto change) {
        auto options = patient();
        change(options);
        const auto checked = options.validate();
        return checked ? "nothing" : checked.error().detail;
    };
    EXPECT_EQ(why([](auto&) {}), "nothing");
    EXPECT_THAT(
        why([](auto& of) { of.latest_time = 999ms; }), HasSubstr("latest_time is 999; choose 1000 ms")
    );
    EXPECT_THAT(why([](auto& of) { of.backoff_min = 0ms; }), HasSubstr("backoff_min is 0"));
    EXPECT_THAT(why([](auto& of) { of.backoff_max = 99ms; }), HasSubstr("choose 1 ms to backoff_max, 99 ms"));
    EXPECT_THAT(why([](auto& of) { of.requests_max = 0; }), HasSubstr("requests_max is 0"));
    EXPECT_THAT(why([](auto& of) { of.entries_max = 0; }), HasSubstr("entries_max is 0"));
    EXPECT_THAT(why([](auto& of) { of.bytes_max = 65'535; }), HasSubstr("bytes_max is 65535"));
    EXPECT_THAT(why([](auto& of) { of.waiters_max = 0; }), HasSubstr("waiters_max is 0"));
    EXPECT_THAT(why([](auto& of) { of.reference_depth_max = 101; }), HasSubstr("reference_depth_max is 101"));
    EXPECT_THAT(why([](auto& of) { of.references_max = 10'001; }), HasSubstr("references_max is 10001"));
    EXPECT_THAT(why([](auto& of) { of.retry_after_max = -1ms; }), HasSubstr("retry_after_max is -1"));
}

}  // namespace
}  // namespace millrace::registry
