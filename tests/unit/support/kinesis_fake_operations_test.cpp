#include "support/kinesis_fake/operations.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace millrace::kinesis_fake {
namespace {

constexpr wall_time now{std::chrono::hours{24 * 365 * 50}};

value text(std::string s) {
    return {std::move(s)};
}

struct KinesisFakeOperations : testing::TestWithParam<wire_form> {
    stream_model model{[] { return now; }};
    fault_plan faults{7};
    operations api{model, faults};

    void SetUp() override { ASSERT_TRUE(model.create("orders", 1)); }

    /// Through the wire and back, as a client would.
    value ok(const std::string& operation, const value_map& request) {
        const auto body = decode(GetParam(), encode(GetParam(), value{request}));
        const auto reply = api.call(operation, *body);
        EXPECT_TRUE(reply.body) << reply.body.error().type << ": " << reply.body.error().message;
        if (!reply.body) return {nullptr};
        return *decode(GetParam(), encode(GetParam(), *reply.body, true));
    }
    refusal refused(const std::string& operation, const value_map& request) {
        const auto reply = api.call(operation, value{request});
        return reply.body ? refusal{} : reply.body.error();
    }
    static std::string text_of(const value& in, std::string_view name) {
        const auto* found = find(in, name);
        return found == nullptr ? "" : std::get<std::string>(found->is);
    }
    std::string iterator() {
        return text_of(
            ok("GetShardIterator",
               {{"StreamName", text("orders")},
                {"ShardId", text(shard_name(0))},
                {"ShardIteratorType", text("TRIM_HORIZON")}}),
            "ShardIterator"
        );
    }
};

INSTANTIATE_TEST_SUITE_P(
    Wires,
    KinesisFakeOperations,
    testing::Values(wire_form::json, wire_form::cbor),
    [](const auto& which) { return which.param == wire_form::json ? "Json" : "Cbor"; }
);

TEST_P(KinesisFakeOperations, GiveBackTheBytesThatWerePut) {
    const std::string bytes("\0\xff\n\"x", 5);
    const auto put =
        ok("PutRecords",
           {{"StreamName", text("orders")},
            {"Records",
             value{value_list{value{value_map{{"Data", value{blob{bytes}}}, {"PartitionKey", text("k")}}}}}}}
        );
    EXPECT_EQ(std::get<std::int64_t>(find(put, "FailedRecordCount")->is), 0);
    const auto read =
        ok("GetRecords", {{"ShardIterator", text(iterator())}, {"Limit", value{std::int64_t{10}}}});
    const auto& records = std::get<value_list>(find(read, "Records")->is);
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(as_blob(*find(records[0], "Data")), bytes);
    EXPECT_EQ(
        as_milliseconds(*find(records[0], "ApproximateArrivalTimestamp")), now.time_since_epoch().count()
    );
    EXPECT_EQ(text_of(records[0], "PartitionKey"), "k");
    EXPECT_NE(text_of(read, "NextShardIterator"), "");
}

TEST_P(KinesisFakeOperations, DescribeAndListTheStream) {
    const auto summary =
        ok("DescribeStreamSummary", {{"StreamARN", text("arn:aws:kinesis:us-east-1:0:stream/orders")}});
    const auto* about = find(summary, "StreamDescriptionSummary");
    ASSERT_NE(about, nullptr);
    EXPECT_EQ(as_milliseconds(*find(*about, "StreamCreationTimestamp")), now.time_since_epoch().count());
    EXPECT_EQ(std::get<std::int64_t>(find(*about, "RetentionPeriodHours")->is), 24);
    model.split_in_middle("orders", shard_name(0));
    const auto listing = ok("ListShards", {{"StreamName", text("orders")}});
    const auto& shards = std::get<value_list>(find(listing, "Shards")->is);
    ASSERT_EQ(shards.size(), 3U);
    EXPECT_EQ(text_of(shards[1], "ParentShardId"), shard_name(0));
    EXPECT_NE(text_of(*find(shards[0], "SequenceNumberRange"), "EndingSequenceNumber"), "");
    EXPECT_EQ(text_of(*find(shards[2], "SequenceNumberRange"), "EndingSequenceNumber"), "");
    EXPECT_EQ(text_of(listing, "NextToken"), "");
}

TEST_P(KinesisFakeOperations, RefuseATokenBesideANameAndMembersThatTheServiceDoesNotHave) {
    EXPECT_EQ(
        refused("ListShards", {{"StreamName", text("orders")}, {"NextToken", text("x")}}).message,
        "NextToken and StreamName cannot be provided together."
    );
    EXPECT_EQ(
        refused("ListShards", {{"StreamName", text("orders")}, {"Limit", value{std::int64_t{5}}}}).type,
        "ValidationException"
    );
    EXPECT_EQ(
        refused(
            "GetRecords", {{"ShardIterator", text(iterator())}, {"Limit", value{std::int64_t{10'001}}}}
        ).type,
        "ValidationException"
    );
    EXPECT_EQ(refused("Nonsense", {}).type, "UnknownOperationException");
    EXPECT_EQ(refused("ListShards", {{"StreamName", text("none")}}).type, "ResourceNotFoundException");
}

TEST_P(KinesisFakeOperations, FailSomeRecordsOfAPutWhenTold) {
    faults.add({.what = fault::partial_put, .operation = "PutRecords"});
    value_list records;
    for (int i = 0; i < 60; ++i)
        records.push_back({value_map{{"Data", value{blob{"x"}}}, {"PartitionKey", text("k")}}});
    const auto put = ok("PutRecords", {{"StreamName", text("orders")}, {"Records", value{records}}});
    const auto failed = std::get<std::int64_t>(find(put, "FailedRecordCount")->is);
    EXPECT_GT(failed, 0);
    EXPECT_LT(failed, 60);
    EXPECT_EQ(model.shard_at("orders", shard_name(0)).records.size(), static_cast<std::size_t>(60 - failed));
}

TEST_P(KinesisFakeOperations, TakeEffectThoughTheReplyFailsOrHaveNone) {
    const value_map put{
        {"StreamName", text("orders")}, {"PartitionKey", text("k")}, {"Data", value{blob{"x"}}}};
    faults.add({.what = fault::failure_after_effect, .times = 1});
    EXPECT_EQ(refused("PutRecord", put).status, 500);
    EXPECT_EQ(model.shard_at("orders", shard_name(0)).records.size(), 1U);
    faults.add({.what = fault::internal_failure, .times = 1});
    EXPECT_EQ(refused("PutRecord", put).status, 500);
    EXPECT_EQ(model.shard_at("orders", shard_name(0)).records.size(), 1U);
    EXPECT_EQ(refused("PutRecord", put), refusal{}) << "each only once";
}

TEST_P(KinesisFakeOperations, HaveFaultsForOneShardAlone) {
    ASSERT_TRUE(model.create("two", 2));
    faults.add({.what = fault::throttled, .operation = "GetShardIterator", .shard = shard_name(1)});
    const auto open = [&](std::uint32_t shard) {
        return refused(
                   "GetShardIterator",
                   {{"StreamName", text("two")},
                    {"ShardId", text(shard_name(shard))},
                    {"ShardIteratorType", text("LATEST")}}
        ).type;
    };
    EXPECT_EQ(open(0), "");
    EXPECT_EQ(open(1), "ProvisionedThroughputExceededException");
    EXPECT_EQ((api.counts().at({"GetShardIterator", shard_name(1)})), 1U);
}

TEST(KinesisFakeWire, RefusesWhatIsCutOrNotWhole) {
    const value whole{value_map{
        {"a", value{value_list{value{true}, value{-5.5}, value{std::int64_t{-300}}, value{nullptr}}}},
        {"b", value{moment{1'234}}},
        {"c", value{blob{std::string(300, 'x')}}}}};
    for (const bool open_ended : {false, true}) {
        const auto body = encode(wire_form::cbor, whole, open_ended);
        EXPECT_EQ(decode(wire_form::cbor, body), whole);
        for (std::size_t size = 0; size < body.size(); ++size)
            EXPECT_FALSE(decode(wire_form::cbor, body.substr(0, size))) << size;
        EXPECT_FALSE(decode(wire_form::cbor, body + "x"));
    }
    EXPECT_FALSE(decode(wire_form::json, "{\"a\":"));
    EXPECT_FALSE(decode(wire_form::cbor, std::string(40, '\x81'))) << "too deep";
}

}  // namespace
}  // namespace millrace::kinesis_fake
