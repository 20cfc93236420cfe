// What goes out for each choice of a rule.
#include "support/temporary_folder.hpp"
#include "unit/schema_sink/schema_world.hpp"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

namespace millrace::schema::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

const std::string guid = "00112233-4455-6677-8899-aabbccddeeff";
const std::string guid_header_value(
    "\x01\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 17
);

topic_rule of_mode(coding_mode mode, schema_format format = schema_format::avro) {
    topic_rule rule;
    rule.topic = "t";
    rule.value.mode = mode;
    rule.value.format = format;
    return rule;
}

TEST(TheModeNone, LeavesTheBytesAndAsksNothing) {
    schema_world world({.rules = {of_mode(coding_mode::none), avro_values("*")}});
    world.start();
    world.put("k", "\x01\x02");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), ElementsAre("\x01\x02"));
    EXPECT_THAT(world.registry->asked, IsEmpty());
}

TEST(TheModeFrame, PutsTheIdBeforeTheBytesAndDoesNotLookAtThem) {
    schema_world world({.rules = {of_mode(coding_mode::frame)}});
    const auto id = world.registry->put("t-value", "not even a schema");
    world.start();
    world.put("k", "any bytes");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), ElementsAre(prefix(id) + "any bytes"));
}

TEST(TheModeFrame, NamesTheMessageOfProtobuf) {
    auto rule = of_mode(coding_mode::frame, schema_format::protobuf);
    rule.value.message_index = {1, 0};
    schema_world world({.rules = {rule}});
    const auto id = world.registry->put("t-value", "syntax = \"proto3\";", registry::schema_type::protobuf);
    world.start();
    world.put("k", "\x08\x01");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), ElementsAre(prefix(id) + std::string("\x04\x02\x00\x08\x01", 5)));
}

TEST(TheModeJson, ChecksTheTextAndLeavesItAsItIs) {
    schema_world world({.rules = {of_mode(coding_mode::json)}});
    const auto id =
        world.registry->put("t-value", R"({"type":"object","required":["n"]})", registry::schema_type::json);
    world.start();
    world.put("k", R"({ "n" : 1.10 })");
    world.put("k", R"({"m":1})");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), ElementsAre(prefix(id) + R"({ "n" : 1.10 })"));
    ASSERT_THAT(world.dead(), ElementsAre("2 refused_record"));
    EXPECT_THAT(world.w->table.dead().front().detail, HasSubstr("JSON Schema"));
}

TEST(TheKey, IsEncodedByARuleOfItsOwn) {
    auto rule = avro_values("t");
    rule.key.mode = coding_mode::avro;
    schema_world world({.rules = {rule}});
    const auto value = world.registry->put("t-value", number_schema);
    const auto key = world.registry->put("t-key", R"("long")");
    world.start();
    world.put("7");
    world.put("x");
    ASSERT_TRUE(world.run_until_empty());
    ASSERT_THAT(world.records, SizeIs(1));
    EXPECT_EQ(world.records[0].key, prefix(key) + "\x0e");
    EXPECT_EQ(world.records[0].value, prefix(value) + "\x02");
    ASSERT_THAT(world.dead(), ElementsAre("2 refused_record"));
    EXPECT_THAT(world.w->table.dead().front().detail, HasSubstr("for the key"));
}

TEST(TheIdInAHeader, LeavesTheValueUntouchedAndTheOtherHeadersToo) {
    auto rule = of_mode(coding_mode::frame);
    rule.value.place = id_place::header;
    rule.key.mode = coding_mode::frame;
    rule.key.place = id_place::header;
    schema_world world({.rules = {rule}});
    (void)world.registry->put("t-value", number_schema, registry::schema_type::avro, guid);
    (void)world.registry->put("t-key", number_schema, registry::schema_type::avro, guid);
    world.start();
    world.put("k", "v", "t", {{"a", "1"}, {"__value_schema_id", "of somebody else"}});
    world.put("k", std::nullopt);
    ASSERT_TRUE(world.run_until_empty());
    ASSERT_THAT(world.records, SizeIs(2));
    EXPECT_EQ(world.records[0].value, "v");
    EXPECT_EQ(world.records[0].key, "k");
    EXPECT_THAT(
        world.records[0].headers,
        ElementsAre(
            Pair("a", "1"),
            Pair("__value_schema_id", guid_header_value),
            Pair("__key_schema_id", guid_header_value)
        )
    );
    EXPECT_THAT(world.records[1].headers, ElementsAre(Pair("__key_schema_id", guid_header_value)))
        << "a tombstone has no schema";
}

TEST(TheIdInAHeader, IsOfAvroThatIsEncodedHere) {
    auto rule = avro_values("t");
    rule.value.place = id_place::header;
    schema_world world({.rules = {rule}});
    (void)world.registry->put("t-value", number_schema, registry::schema_type::avro, guid);
    world.start();
    world.put("k");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), ElementsAre("\x02"));
}

TEST(TheIdInAHeader, IsRefusedWithItsReasonWhereTheRegistryGivesNoGuids) {
    auto rule = of_mode(coding_mode::frame);
    rule.value.place = id_place::header;
    schema_world world({.rules = {rule}});
    (void)world.registry->put("t-value", number_schema);
    world.start();
    world.put("k");
    world.run(10s);
    EXPECT_THAT(world.records, IsEmpty());
    ASSERT_TRUE(world.w->driver->last_error());
    EXPECT_THAT(world.w->driver->last_error()->detail, HasSubstr("gives no GUID"));
}

TEST(TheIdInAHeader, IsLookedAtBeforeAnyRowWhereTheRuleTellsTheSubject) {
    auto rule = of_mode(coding_mode::frame);
    rule.value.place = id_place::header;
    auto pattern = rule;
    pattern.topic = "u*";
    schema_world world({.rules = {rule, pattern}});
    std::vector<std::string> lacking;
    world.coder->look_for_guids([&](const error& why) {
        EXPECT_EQ(why.code, errc::invalid_config);
        lacking.push_back(why.detail);
    });
    world.run(1s);
    EXPECT_THAT(lacking, IsEmpty()) << "the subject is not there";
    (void)world.registry->put("t-value", number_schema);
    world.run(1min);
    world.coder->look_for_guids([&](const error& why) { lacking.push_back(why.detail); });
    world.run(1s);
    EXPECT_THAT(lacking, ElementsAre(HasSubstr("t-value")));
}

TEST(TheVersion, MayBeFixed) {
    auto rule = avro_values("t");
    rule.value.version = version_choice::fixed;
    rule.value.fixed_version = 1;
    schema_world world({.rules = {rule}});
    const auto first = world.registry->put("t-value", number_schema);
    (void)world.registry->put("t-value", wider_schema);
    world.start();
    world.put("k");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.values(), ElementsAre(prefix(first) + "\x02"));
}

TEST(TheVersion, MayComeFromAHeaderThatIsTakenOff) {
    auto rule = avro_values("t");
    rule.value.version = version_choice::header;
    rule.value.version_header = "v";
    schema_world world({.rules = {rule}});
    const auto first = world.registry->put("t-value", number_schema);
    const auto second = world.registry->put("t-value", wider_schema);
    world.start();
    world.put("k", R"({"n":1})", "t", {{"v", "1"}, {"a", "b"}});
    world.put("k", R"({"n":1})", "t", {{"v", "2"}});
    world.put("l", R"({"n":1})", "t", {{"v", "no"}});
    world.put("m", R"({"n":1})");
    world.put("n", std::nullopt, "t", {{"v", "2"}});
    world.put("o", R"({"n":1})", "t", {{"v", "3"}});
    world.run(10s);
    ASSERT_THAT(world.records, SizeIs(3));
    const auto value_of = [&](std::int64_t id) {
        const auto found = std::find_if(world.records.begin(), world.records.end(), [&](const arrived& r) {
            return r.id == row_id{id};
        });
        return found == world.records.end() ? arrived{} : *found;
    };
    EXPECT_EQ(value_of(1).value, prefix(first) + "\x02");
    EXPECT_THAT(value_of(1).headers, ElementsAre(Pair("a", "b")));
    EXPECT_EQ(value_of(2).value, prefix(second) + "\x02\x0e");
    EXPECT_THAT(value_of(5).headers, IsEmpty());
    EXPECT_THAT(world.dead(), testing::UnorderedElementsAre("3 refused_record", "4 refused_record"));
    ASSERT_TRUE(world.w->driver->last_error());
    EXPECT_EQ(world.w->driver->last_error()->code, errc::refused_record);
    (void)world.registry->put("t-value", wider_schema);
    EXPECT_TRUE(world.run_until_empty(5min)) << "a version that comes later is waited for";
}

TEST(TheSubject, IsMadeAsTheRuleSays) {
    const std::pair<subject_strategy, std::string> all[] = {
        {subject_strategy::topic, "t-value"},
        {subject_strategy::record, "acme.N"},
        {subject_strategy::topic_and_record, "t-acme.N"},
        {subject_strategy::given, "mine"}};
    for (const auto& [strategy, subject] : all) {
        auto rule = avro_values("t");
        rule.value.subject = strategy;
        if (strategy == subject_strategy::given) rule.value.given_subject = "mine";
        const bool by_record =
            strategy == subject_strategy::record || strategy == subject_strategy::topic_and_record;
        if (by_record) rule.value.record_name = "acme.N";
        schema_world world({.rules = {rule}});
        const auto id = world.registry->put(subject, number_schema);
        world.start();
        world.put("k");
        ASSERT_TRUE(world.run_until_empty()) << subject;
        EXPECT_THAT(world.values(), ElementsAre(prefix(id) + "\x02"));
    }
}

TEST(AutoRegister, PutsTheSchemaOfTheFileUnderTheSubjectOfEachTopicOnce) {
    const support::temporary_folder folder;
    std::ofstream(folder.path() / "n.avsc") << number_schema;
    auto rule = avro_values("*");
    rule.value.auto_register = true;
    rule.value.schema_file = (folder.path() / "n.avsc").string();
    schema_world world({.rules = {rule}});
    world.start();
    for (int i = 0; i < 20; ++i)
        world.put("k" + std::to_string(i), R"({"n":1})", i % 2 == 0 ? "t" : "u");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_THAT(world.registry->registered, testing::UnorderedElementsAre("t-value", "u-value"));
    EXPECT_THAT(world.values("t"), SizeIs(10));
    EXPECT_THAT(world.values("u"), SizeIs(10));
}

TEST(AutoRegister, ShowsWhatTheRegistrySaidWhenItRefuses) {
    const support::temporary_folder folder;
    std::ofstream(folder.path() / "n.avsc") << number_schema;
    auto rule = avro_values("t");
    rule.value.auto_register = true;
    rule.value.schema_file = (folder.path() / "n.avsc").string();
    schema_world world({.rules = {rule}});
    world.registry->fails = failure_kind::incompatible;
    world.start();
    world.put("k");
    world.run(10s);
    EXPECT_THAT(world.records, IsEmpty());
    EXPECT_THAT(world.dead(), IsEmpty());
    ASSERT_TRUE(world.w->driver->last_error());
    EXPECT_THAT(world.w->driver->last_error()->detail, HasSubstr("the registry failed at"));
}

TEST(ASchemaFile, ThatIsNoneIsAFaultOfTheStart) {
    const support::temporary_folder folder;
    std::ofstream(folder.path() / "bad.avsc") << "{";
    std::ofstream(folder.path() / "empty.avsc") << "";
    ASSERT_EQ(::mkfifo((folder.path() / "pipe.avsc").c_str(), 0600), 0);
    auto rule = avro_values("t");
    rule.value.auto_register = true;
    for (const auto* name : {"bad.avsc", "absent.avsc", "empty.avsc", "pipe.avsc", ""}) {
        rule.value.schema_file = (folder.path() / name).string();
        EXPECT_THROW(schema_world({.rules = {rule}}), std::runtime_error);
    }
}

TEST(Values, ThatGrowBeyondWhatTheSinkMayHoldGoOutPieceByPiece) {
    const std::string big(100'000, 'x');
    const auto wide =
        R"({"type":"record","name":"N","fields":[{"name":"n","type":"int"},{"name":"m","type":"string","default":")" +
        big + R"("}]})";
    schema_world world({.sink = {.coded_bytes_max = 300'000}});
    const auto id = world.registry->put("t-value", wide);
    world.start();
    for (int i = 0; i < 40; ++i)
        world.put("k" + std::to_string(i % 3));
    ASSERT_TRUE(world.run_until_empty(120s));
    ASSERT_THAT(world.values(), SizeIs(40));
    EXPECT_TRUE(world.values().front().starts_with(prefix(id) + "\x02"));
    EXPECT_THAT(world.w->broken, IsEmpty());
    EXPECT_THAT(world.dead(), IsEmpty());
}

TEST(Topics, BeyondWhatIsKeptAreMadeAnew) {
    auto rule = avro_values("*");
    rule.value.subject = subject_strategy::given;
    rule.value.given_subject = "one";
    schema_world world({.rules = {rule}, .coder = {.topics_max = 1}});
    const auto id = world.registry->put("one", number_schema);
    world.start();
    for (int i = 0; i < 50; ++i)
        world.put("k", R"({"n":1})", i % 2 == 0 ? "t" : "u");
    ASSERT_TRUE(world.run_until_empty());
    EXPECT_EQ(world.coder->topics(), 1U);
    EXPECT_THAT(world.values("t"), testing::Each(prefix(id) + "\x02"));
    EXPECT_THAT(world.registry->asked, SizeIs(1));
}

}  // namespace
}  // namespace millrace::schema::test
