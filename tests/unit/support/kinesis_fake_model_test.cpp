#include "support/kinesis_fake/sequence.hpp"
#include "support/kinesis_fake/stream_model.hpp"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::kinesis_fake {
namespace {

constexpr wall_time start{std::chrono::hours{24 * 365 * 50}};

struct KinesisFakeModel : testing::Test {
    wall_time now = start;
    stream_model model{[this] { return now; }};

    void SetUp() override { ASSERT_TRUE(model.create("orders", 2)); }

    std::string open(const std::string& shard, const iterator_place& where) {
        const auto made = model.iterator("orders", shard, where);
        EXPECT_TRUE(made) << made.error().message;
        now += 250ms;  // within the limit
        return made.value_or("");
    }
    std::string horizon(const std::string& shard) { return open(shard, {"TRIM_HORIZON", {}, {}}); }

    refusal refused(const std::string& shard, const iterator_place& where) {
        const auto made = model.iterator("orders", shard, where);
        now += 250ms;
        return made ? refusal{} : made.error();
    }
    std::vector<std::string> data_of(const read_page& page) {
        std::vector<std::string> all;
        for (const auto* record : page.records)
            all.push_back(record->data);
        return all;
    }
    written add(const std::string& shard, const std::string& data) {
        return model.append_to("orders", shard, "k", data);
    }
    std::vector<std::string> listed() {
        std::vector<std::string> ids;
        const auto page = model.list("orders", 0);
        for (const auto* shard : page.value().shards)
            ids.push_back(shard->id);
        return ids;
    }

    const std::string zero = shard_name(0);
    const std::string one = shard_name(1);
};

using texts = std::vector<std::string>;

TEST(KinesisFakeSequence, TellsWhatItWasMadeOf) {
    const sequence_parts parts{1'764'518'400, 77, 1'764'518'401, 4'321};
    const auto text = to_sequence(parts);
    EXPECT_EQ(text.size(), 56U);
    EXPECT_EQ(from_sequence(text), parts);
    EXPECT_FALSE(from_sequence("12"));
    EXPECT_FALSE(from_sequence(""));
    EXPECT_FALSE(from_sequence(text + "0"));
    EXPECT_FALSE(from_sequence("x" + text));
}

TEST(KinesisFakeSequence, ReadsANumberOfTheServiceItself) {
    const auto parts = from_sequence("49590338271490256608559692538361571095921575989136588898");
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->shard, 6U);
    EXPECT_EQ(to_sequence(*parts), "49590338271490256608559692538361571095921575989136588898");
}

TEST_F(KinesisFakeModel, ReadsWhatWasWrittenInItsOrderAndGivesAFreshIteratorEachTime) {
    add(zero, "a");
    add(zero, "b");
    const auto from = horizon(zero);
    const auto page = model.read(from, 1);
    ASSERT_TRUE(page);
    EXPECT_EQ(data_of(*page), texts{"a"});
    EXPECT_GT(page->behind, 0ms);
    const auto rest = model.read(*page->next, 10);
    EXPECT_EQ(data_of(*rest), texts{"b"});
    EXPECT_EQ(rest->behind, 0ms);
    const auto empty = model.read(*rest->next, 10);
    EXPECT_TRUE(empty->records.empty());
    EXPECT_NE(*empty->next, *rest->next);
}

TEST_F(KinesisFakeModel, FixesLatestWhenTheIteratorIsAskedFor) {
    add(zero, "before");
    const auto from = open(zero, {"LATEST", {}, {}});
    add(zero, "between");
    EXPECT_EQ(data_of(*model.read(from, 10)), texts{"between"});
}

TEST_F(KinesisFakeModel, BeginsAtAndAfterANumberAndAtATime) {
    const auto a = add(zero, "a");
    now += 1s;
    add(zero, "b");
    const auto second = now;
    now += 1s;
    EXPECT_EQ(
        data_of(*model.read(open(zero, {"AT_SEQUENCE_NUMBER", a.sequence, {}}), 10)), (texts{"a", "b"})
    );
    EXPECT_EQ(data_of(*model.read(open(zero, {"AFTER_SEQUENCE_NUMBER", a.sequence, {}}), 10)), texts{"b"});
    EXPECT_EQ(data_of(*model.read(open(zero, {"AT_TIMESTAMP", {}, second}), 10)), texts{"b"});
    const auto first = stream_model::first_sequence(model.shard_at("orders", zero));
    EXPECT_EQ(data_of(*model.read(open(zero, {"AFTER_SEQUENCE_NUMBER", first, {}}), 10)), (texts{"a", "b"}))
        << "the number a shard begins with is valid though no record has it";
    EXPECT_EQ(refused(zero, {"AT_TIMESTAMP", {}, now + 1h}).type, "InvalidArgumentException");
}

TEST_F(KinesisFakeModel, RefusesNumbersOfOtherShardsOfOlderStreamsAndTheLastOfAClosedShard) {
    const auto elsewhere = add(one, "x");
    EXPECT_EQ(
        refused(zero, {"AFTER_SEQUENCE_NUMBER", elsewhere.sequence, {}}),
        (refusal{
            "InvalidArgumentException",
            "Invalid StartingSequenceNumber. It encodes shardId-000000000001, while it was used in a call to "
            "shardId-000000000000"})
    );
    const auto here = add(zero, "y");
    model.split_in_middle("orders", zero);
    const auto last = stream_model::last_sequence(model.shard_at("orders", zero));
    EXPECT_NE(
        refused(zero, {"AFTER_SEQUENCE_NUMBER", last, {}}).message.find("has reached max possible value"),
        std::string::npos
    );
    ASSERT_TRUE(model.remove("orders"));
    ASSERT_TRUE(model.create("orders", 2));
    EXPECT_NE(
        refused(
            zero, {"AFTER_SEQUENCE_NUMBER", here.sequence, {}}
        ).message.find("because it did not come from this stream"),
        std::string::npos
    );
    EXPECT_EQ(refused(zero, {"AFTER_SEQUENCE_NUMBER", "12", {}}).type, "InvalidArgumentException");
}

TEST_F(KinesisFakeModel, ResolvesATrimmedNumberToTheHorizonWithoutAWord) {
    const auto a = add(zero, "a");
    add(zero, "b");
    add(zero, "c");
    model.trim("orders", zero, 2);
    EXPECT_EQ(data_of(*model.read(open(zero, {"AFTER_SEQUENCE_NUMBER", a.sequence, {}}), 10)), texts{"c"});
}

TEST_F(KinesisFakeModel, EndsAClosedShardWithItsChildrenWithOrBehindItsLastRecord) {
    add(zero, "a");
    model.split_in_middle("orders", zero);
    const auto page = model.read(horizon(zero), 10);
    EXPECT_FALSE(page->next);
    ASSERT_EQ(page->children.size(), 2U);
    EXPECT_EQ(page->children[0]->parent, 0U);
    EXPECT_EQ(page->children[0]->id, shard_name(2));

    model.limits.end_with_records = false;
    const auto with_record = model.read(horizon(zero), 10);
    ASSERT_TRUE(with_record->next);
    const auto end = model.read(*with_record->next, 10);
    EXPECT_TRUE(end->records.empty());
    EXPECT_FALSE(end->next);
    EXPECT_EQ(end->children.size(), 2U);
}

TEST_F(KinesisFakeModel, NamesBothParentsOfAMerge) {
    ASSERT_TRUE(model.merge("orders", zero, one));
    const auto end = model.read(horizon(one), 10);
    EXPECT_FALSE(end->next);
    ASSERT_EQ(end->children.size(), 1U);
    EXPECT_EQ(end->children[0]->parent, 0U);
    EXPECT_EQ(end->children[0]->other_parent, 1U);
    EXPECT_FALSE(model.merge("orders", zero, one)) << "they are closed";
}

TEST_F(KinesisFakeModel, ScalesToAnyCountByNeighbouringRanges) {
    for (const std::uint32_t count : {4U, 3U, 5U, 3U, 2U, 1U, 2U}) {
        ASSERT_TRUE(model.resize("orders", count)) << count;
        std::vector<hash_range> open;
        for (const auto& shard : model.find("orders").value()->shards) {
            if (!shard.closed) open.push_back(shard.range);
        }
        std::ranges::sort(open);
        EXPECT_EQ(open, split_evenly(count));
    }
    EXPECT_FALSE(model.resize("orders", 5)) << "more than twice";
}

TEST_F(KinesisFakeModel, RefusesTheSixthReadInASecondWhoeverAsks) {
    const auto from = horizon(zero);
    for (int i = 0; i < 5; ++i)
        ASSERT_TRUE(model.read(from, 10));
    EXPECT_EQ(model.read(from, 10).error().type, "ProvisionedThroughputExceededException");
    EXPECT_TRUE(model.read(horizon(one), 10)) << "the limit is of the shard";
    now += 1s;
    EXPECT_TRUE(model.read(from, 10));
}

TEST_F(KinesisFakeModel, RefusesReadsForFiveSecondsAfterAReplyOfTenMebibytes) {
    for (int i = 0; i < 12; ++i)
        add(zero, std::string(1'000'000, 'x'));
    const auto page = model.read(horizon(zero), 100);
    ASSERT_EQ(page->records.size(), 10U) << "a reply holds 10 MiB";
    const auto served = now;
    for (now += 300ms; now < served + 4700ms; now += 300ms)
        ASSERT_FALSE(model.read(*page->next, 100)) << (now - served).count();
    now = served + 5s;
    EXPECT_EQ(model.read(*page->next, 100)->records.size(), 2U);
}

TEST_F(KinesisFakeModel, RefusesTheSixthIteratorInASecond) {
    for (int i = 0; i < 5; ++i)
        ASSERT_TRUE(model.iterator("orders", zero, {"LATEST", {}, {}}));
    EXPECT_EQ(
        model.iterator("orders", zero, {"LATEST", {}, {}}).error().type,
        "ProvisionedThroughputExceededException"
    );
}

TEST_F(KinesisFakeModel, LetsIteratorsExpireAndRefusesWhatIsNone) {
    const auto from = horizon(zero);
    now += model.limits.iterator_life;
    EXPECT_EQ(model.read(from, 10).error().type, "ExpiredIteratorException");
    EXPECT_EQ(model.read("bm9uc2Vuc2U=", 10).error().message, "Invalid ShardIterator.");
    const auto kept = horizon(zero);
    ASSERT_TRUE(model.remove("orders"));
    EXPECT_EQ(model.read(kept, 10).error().type, "ResourceNotFoundException");
    ASSERT_TRUE(model.create("orders", 2));
    EXPECT_EQ(model.read(kept, 10).error().message, "Invalid ShardIterator.") << "of the older stream";
}

TEST_F(KinesisFakeModel, ListsInPagesByTokensThatExpire) {
    ASSERT_TRUE(model.create("wide", 5));
    model.limits.page_shards = 2;
    const auto first = model.list("wide", 1'000);
    ASSERT_EQ(first->shards.size(), 2U);
    const auto second = model.list_on(*first->token, 1'000);
    ASSERT_EQ(second->shards.size(), 2U);
    EXPECT_EQ(second->shards[0]->id, shard_name(2));
    const auto last = model.list_on(*second->token, 1'000);
    EXPECT_EQ(last->shards.size(), 1U);
    EXPECT_FALSE(last->token);
    now += model.limits.token_life + 1ms;
    EXPECT_EQ(model.list_on(*first->token, 1'000).error().type, "ExpiredNextTokenException");
    EXPECT_EQ(model.list_on("AAAA", 1'000).error().type, "InvalidArgumentException");
}

TEST_F(KinesisFakeModel, ForgetsWhatIsOlderThanTheRetentionAndUnlistsClosedShardsWithoutRecords) {
    add(zero, "a");
    model.split_in_middle("orders", zero);
    now += 23h;
    add(shard_name(2), "b");
    EXPECT_EQ(listed().size(), 4U);
    now += 2h;
    EXPECT_EQ(listed(), (texts{one, shard_name(2), shard_name(3)}));
    EXPECT_EQ(refused(zero, {"TRIM_HORIZON", {}, {}}).type, "ResourceNotFoundException");
    EXPECT_EQ(data_of(*model.read(horizon(shard_name(2)), 10)), texts{"b"});
}

TEST_F(KinesisFakeModel, HidesALateRecordAndAllBehindItUntilItsTime) {
    model.late_visible = 500ms;
    add(zero, "late");
    model.late_visible = 0ms;
    add(zero, "behind");
    const auto from = horizon(zero);  // 250 ms later
    const auto page = model.read(from, 10);
    EXPECT_TRUE(page->records.empty());
    EXPECT_EQ(page->behind, 0ms);
    now += 300ms;
    EXPECT_EQ(data_of(*model.read(*page->next, 10)), (texts{"late", "behind"}));
}

TEST_F(KinesisFakeModel, PutsByTheHashOfTheKeyOrByTheGivenOneWithinTheShardsLimits) {
    EXPECT_EQ(hash_of("a").to_string(), "16955237001963240173058271559858726497");
    const auto by_key = model.put("orders", "a", "x");
    EXPECT_EQ(by_key->shard, zero);
    EXPECT_EQ(model.put("orders", "a", "x", hash_key::largest().to_string())->shard, one);
    EXPECT_EQ(model.put("orders", "a", "x", "007").error().type, "InvalidArgumentException");
    ASSERT_TRUE(model.put("orders", "a", std::string(1 << 20, 'x')));
    EXPECT_EQ(model.put("orders", "a", "x").error().type, "ProvisionedThroughputExceededException");
}

TEST_F(KinesisFakeModel, CanReadOddly) {
    add(zero, "a");
    add(zero, "b");
    model.split_in_middle("orders", zero);
    const auto from = horizon(zero);
    const auto empty = model.read(from, 10, {.empty = true});
    EXPECT_TRUE(empty->records.empty());
    EXPECT_GT(empty->behind, 0ms);
    ASSERT_TRUE(empty->next);
    EXPECT_EQ(data_of(*model.read(from, 10, {.one_only = true})), texts{"a"});
    const auto end = model.read(*empty->next, 10, {.childless = true});
    EXPECT_FALSE(end->next);
    EXPECT_TRUE(end->children.empty());
}

}  // namespace
}  // namespace millrace::kinesis_fake
