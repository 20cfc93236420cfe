// What a registry or a value that fails does to rows: F1 to F6 of goharvest's fork among them.
#include "unit/schema_sink/schema_world.hpp"

#include <gmock/gmock.h>

namespace millrace::schema::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct ARegistryThatFails : testing::TestWithParam<failure_kind> {};

TEST_P(ARegistryThatFails, LosesNoRowParksNoneAndLetsNoneOutUnframed) {
    schema_world world;
    const auto id = world.registry->put("t-value", number_schema);
    world.registry->fails = GetParam();
    world.start();
    for (int i = 0; i < 100; ++i)
        world.put("k" + std::to_string(i % 7));
    world.put("plain", "as it is", "u");
    world.run(5min);
    EXPECT_THAT(world.values("t"), IsEmpty());
    EXPECT_THAT(world.values("u"), ElementsAre("as it is"));
    EXPECT_THAT(world.dead(), IsEmpty());
    EXPECT_FALSE(world.w->stopped);
    world.registry->fails.reset();
    ASSERT_TRUE(world.run_until_empty(120s));
    EXPECT_THAT(world.values("t"), SizeIs(100));
    EXPECT_THAT(world.values("t"), Each(prefix(id) + "\x02"));
    EXPECT_THAT(world.w->broken, IsEmpty());
    EXPECT_EQ(world.w->duplicates, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    InEachWay,
    ARegistryThatFails,
    testing::Values(
        failure_kind::unreachable,
        failure_kind::out_of_order,
        failure_kind::throttled,
        failure_kind::unauthorized,
        failure_kind::forbidden,
        failure_kind::not_a_registry,
        failure_kind::no_such_subject,
        failure_kind::no_such_schema,
        failure_kind::incompatible,
        failure_kind::invalid_schema,
        failure_kind::refused
    ),
    [](const auto& of) { return std::string(name_of(of.param)); }
);

TEST(ARegistryThatIsDown, DoesNotTouchWhatIsCachedHoweverLong) {
    schema_world world;
    const auto id = world.registry->put("t-value", number_schema);
    world.start();
    world.put("a");
    ASSERT_TRUE(world.run_until_empty());
    world.registry->fails = failure_kind::unreachable;
    for (int i = 0; i < 300; ++i) {
        world.put("a");
        world.run(1s);
    }
    EXPECT_THAT(world.values(), SizeIs(301));
    EXPECT_THAT(world.values(), Each(prefix(id) + "\x02"));
    EXPECT_EQ(world.w->log.count("schema_registry.trouble"), 1U);
    EXPECT_EQ(world.w->log.count("schema_registry.stale"), 1U);
}

TEST(ASubjectThatIsMissing, HoldsBackItsTopicAloneAndIsFoundOnceItIsThere) {
    schema_world world({.rules = {avro_values("*")}});
    (void)world.registry->put("u-value", number_schema);
    world.start();
    for (int i = 0; i < 400; ++i)
        world.put("k" + std::to_string(i % 40), R"({"n":1})", i % 2 == 0 ? "t" : "u");
    world.run(10s);
    EXPECT_THAT(world.values("u"), SizeIs(200));
    EXPECT_THAT(world.values("t"), IsEmpty());
    ASSERT_TRUE(world.w->driver->last_error());
    EXPECT_EQ(world.w->driver->last_error()->code, errc::refused_topic);
    EXPECT_THAT(world.w->driver->last_error()->detail, HasSubstr("t-value"));
    (void)world.registry->put("t-value", number_schema);
    ASSERT_TRUE(world.run_until_empty(120s));
    EXPECT_THAT(world.values("t"), SizeIs(200));
    EXPECT_THAT(world.dead(), IsEmpty());
    EXPECT_THAT(world.w->broken, IsEmpty());
}

TEST(ASubjectThatIsMissing, IsGivenUpAfterSoManyAnswersWhenAskedFor) {
    schema_world world({.relay = {.relay = {.max_attempts = 3}}});
    world.start();
    world.put("a");
    world.put("a");
    ASSERT_TRUE(world.run_until_empty(10min));
    EXPECT_THAT(world.dead(), ElementsAre("1 refused_topic", "2 lane_is_parked"));
    EXPECT_THAT(world.records, IsEmpty());
}

TEST(ASchemaOfAnotherType, HoldsBackTheTopicAndSaysWhy) {
    schema_world world;
    (void)world.registry->put("t-value", R"({"type":"object"})", registry::schema_type::json);
    world.start();
    world.put("a");
    world.run(10s);
    EXPECT_THAT(world.records, IsEmpty());
    ASSERT_TRUE(world.w->driver->last_error());
    EXPECT_THAT(world.w->driver->last_error()->detail, AllOf(HasSubstr("JSON"), HasSubstr("takes AVRO")));
}

TEST(ASchemaThatCannotBeRead, HoldsBackTheTopicUntilANewerOneCan) {
    schema_world world;
    (void)world.registry->put("t-value", R"({"type":"nonsense"})");
    world.start();
    world.put("a");
    world.run(10s);
    EXPECT_THAT(world.records, IsEmpty());
    EXPECT_THAT(world.dead(), IsEmpty());
    (void)world.registry->put("t-value", number_schema);
    ASSERT_TRUE(world.run_until_empty(5min));
    EXPECT_THAT(world.values(), SizeIs(1));
}

TEST(ASubjectThatIsMissing, DoesNotMakeASinkThatIsAwayLookPresentNorAPresentOneAway) {
    schema_world world;
    world.start();
    world.put("a");
    world.run(1min);
    EXPECT_FALSE(world.w->driver->reach().sink.silent_since) << "nobody asked the sink for anything";
    world.w->sink_faults.unavailable = 100;
    world.put("a", "v", "u");
    world.run(5s);
    const auto since = world.w->driver->reach().sink.silent_since;
    ASSERT_TRUE(since);
    world.run(5min);
    EXPECT_EQ(world.w->driver->reach().sink.silent_since, since);
}

TEST(AValueThatDoesNotFit, IsParkedWithItsPlaceAndTheOthersGoOut) {
    schema_world world;
    const auto id = world.registry->put("t-value", number_schema);
    world.start();
    for (int i = 0; i < 30; ++i)
        world.put("k" + std::to_string(i % 3), i == 10 ? R"({"n":"secret"})" : R"({"n":1})");
    ASSERT_TRUE(world.run_until_empty());
    ASSERT_THAT(world.w->table.dead(), SizeIs(7));
    const auto& first = world.w->table.dead().front();
    EXPECT_EQ(first.row.id, row_id{11});
    EXPECT_EQ(first.reason, "refused_record");
    EXPECT_THAT(
        first.detail, AllOf(HasSubstr("$.n: expected int, found a string"), HasSubstr("subject \"t-value\""))
    );
    EXPECT_THAT(first.detail, testing::Not(HasSubstr("secret")));
    EXPECT_EQ(first.attempts, 1U);
    EXPECT_THAT(world.values(), SizeIs(23));
    EXPECT_THAT(world.values(), Each(prefix(id) + "\x02"));
    EXPECT_THAT(world.w->broken, IsEmpty());
    EXPECT_EQ(world.w->duplicates, 0U);
    EXPECT_EQ(world.inner->resets, 0) << "a row that was never handed over costs no producer";
}

TEST(AValueThatDoesNotFit, EndsTheRelayWhenThePolicySaysSo) {
    schema_world world({.relay = {.relay = {.on_poison = poison_policy::stop}}});
    (void)world.registry->put("t-value", number_schema);
    world.start();
    world.put("a", "no JSON");
    world.run(1s);
    ASSERT_TRUE(world.w->stopped);
    EXPECT_EQ(world.w->stopped->code, errc::refused_record);
    EXPECT_THAT(world.records, IsEmpty());
}

TEST(AValueThatDoesNotFit, AmongManyOthersOfManyKeysDelaysNobodyForLong) {
    schema_world world({.relay = {.relay = {.on_poison = poison_policy::park_row}}});
    (void)world.registry->put("t-value", number_schema);
    world.start();
    for (int i = 0; i < 2000; ++i)
        world.put("k" + std::to_string(i % 100), i % 20 == 0 ? R"({})" : R"({"n":1})");
    ASSERT_TRUE(world.run_until_empty(20s));
    EXPECT_THAT(world.values(), SizeIs(1900));
    EXPECT_THAT(world.dead(), SizeIs(100));
    EXPECT_THAT(world.w->broken, IsEmpty());
}

TEST(ATombstone, IsNeverFramed) {
    auto rule = avro_values("t");
    rule.value.mode = coding_mode::frame;
    rule.key.mode = coding_mode::frame;
    schema_world world({.rules = {rule}});
    const auto value = world.registry->put("t-value", number_schema);
    const auto key = world.registry->put("t-key", R"("string")");
    world.start();
    world.put("k", std::nullopt);
    world.put("k", "");
    ASSERT_TRUE(world.run_until_empty());
    ASSERT_THAT(world.records, SizeIs(2));
    EXPECT_EQ(world.records[0].value, std::nullopt);
    EXPECT_EQ(world.records[0].key, prefix(key) + "k");
    EXPECT_EQ(world.records[1].value, prefix(value)) << "an empty value is a value";
}

TEST(ATombstone, NeedsNoSchemaAndWaitsForNone) {
    schema_world world;
    world.registry->fails = failure_kind::unreachable;
    world.start();
    world.put("k", std::nullopt);
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), ElementsAre("NULL"));
    EXPECT_THAT(world.registry->asked, IsEmpty());
}

TEST(Registering, HappensOnlyWhereTheRuleSaysSo) {
    schema_world world;
    world.start();
    world.put("a");
    world.run(5min);
    EXPECT_THAT(world.registry->registered, IsEmpty());
    EXPECT_THAT(world.records, IsEmpty());
}

}  // namespace
}  // namespace millrace::schema::test
