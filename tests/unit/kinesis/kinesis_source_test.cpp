#include "kinesis_source.hpp"

#include "kinesis/codec.hpp"
#include "record/bytes_text.hpp"
#include "record/hash_key.hpp"
#include "unit/aws/scripted_api.hpp"
#include "unit/kinesis/step_host.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using namespace aws::kinesis;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const shard_id first{"shardId-000000000000"};
constexpr wall_time date{milliseconds{1'700'000'000'000}};

template <class T>
struct outcome_of {
    std::optional<result<T>> how;
    completion<T> take() {
        return [this](result<T> r) {
            EXPECT_FALSE(how) << "completed twice";
            how.emplace(std::move(r));
        };
    }
};

aws::kinesis::shard shard_named(const std::string& id, bool closed = false) {
    aws::kinesis::shard s;
    s.id = id;
    s.hashes = {"0", hash_key::largest().to_string()};
    s.sequences.starting = "1";
    if (closed) s.sequences.ending = "9";
    return s;
}

class KinesisSource : public testing::Test {
protected:
    std::string operation() const {
        return api->next().operation.substr(std::string("Kinesis_20131202.").size());
    }
    template <class Message>
    Message asked() const {
        EXPECT_EQ(operation(), Message::operation);
        return decode<Message>(api->next().body, wire::cbor).value();
    }
    template <class Message>
    void answer(const Message& message) {
        api->reply(encode(message, wire::cbor), date);
        host.turn();
    }
    void refuse(errc code, const std::string& type, const std::string& message = "") {
        api->fail(scripted_api::failure(code, type, retry_advice::never, false, message));
        host.turn();
    }
    void answer_listing(std::vector<aws::kinesis::shard> shards) {
        describe_stream_summary_reply described;
        described.summary = {"orders", "arn", "ACTIVE", date - milliseconds{5'000}, 24, 1};
        answer(described);
        list_shards_reply listed;
        listed.shards = std::move(shards);
        answer(listed);
    }
    /// Opens the shard, with the listing that the source needs first.
    result<read_cursor> open(const start_position& start) {
        outcome_of<read_cursor> opened;
        source.open(first, start, opened.take());
        if (operation() == "DescribeStreamSummary") answer_listing({shard_named(first.value())});
        iterator = asked<get_shard_iterator>();
        answer(get_shard_iterator_reply{"it-1"});
        return *opened.how;
    }
    result<read_reply> read(
        const read_cursor& cursor, const std::function<void()>& service, read_limits limits = {}
    ) {
        outcome_of<read_reply> read;
        source.read(first, cursor, limits, read.take());
        host.turn();
        if (api->waiting() > 0) service();
        EXPECT_TRUE(read.how);
        return *read.how;
    }
    using records_reply = get_records_reply_with<std::vector<stored_record>>;
    static records_reply reply_of(
        std::vector<stored_record> records, std::optional<std::string> next = "it-2"
    ) {
        records_reply reply;
        reply.records = std::move(records);
        reply.next_iterator = std::move(next);
        reply.millis_behind = 0;
        return reply;
    }
    static std::vector<std::string> data_of(const result<read_reply>& reply) {
        std::vector<std::string> all;
        for (const auto& r : reply->records->records())
            all.emplace_back(*r.data);
        return all;
    }

    step_host host;
    scripted_api* api{new scripted_api};
    kinesis_source source{host, {.region = "eu-west-1", .stream = "orders"}, std::unique_ptr<aws::api>(api)};
    get_shard_iterator iterator;
};

TEST_F(KinesisSource, ListsAllPagesByTheTokenAlone) {
    outcome_of<stream_listing> listed;
    source.list_shards(listed.take());
    describe_stream_summary_reply described;
    described.summary = {"orders", "arn:aws:kinesis:eu-west-1:1:stream/orders", "ACTIVE", date, 24, 2};
    EXPECT_EQ(asked<describe_stream_summary>().stream.name, "orders");
    answer(described);
    EXPECT_EQ(asked<list_shards>().stream.name, "orders");
    answer(list_shards_reply{{shard_named("a")}, "page 2"});
    EXPECT_EQ(asked<list_shards>().next_token, "page 2");
    EXPECT_EQ(asked<list_shards>().stream.name, "");
    EXPECT_FALSE(listed.how) << "a part of a list is never given out";
    auto child = shard_named("b", true);
    child.parent = "a";
    answer(list_shards_reply{{child}, std::nullopt});
    ASSERT_TRUE(listed.how && *listed.how);
    const auto& listing = **listed.how;
    EXPECT_EQ(listing.identity, "arn:aws:kinesis:eu-west-1:1:stream/orders of 1700000000000");
    EXPECT_EQ(listing.now, date);
    EXPECT_EQ(listing.retention, std::chrono::hours{24});
    ASSERT_EQ(listing.shards.size(), 2U);
    EXPECT_FALSE(listing.shards[0].closed);
    EXPECT_TRUE(listing.shards[1].closed);
    EXPECT_THAT(listing.shards[1].parents, ElementsAre(shard_id{"a"}));
}

// Of 2,000 shards of a stream that was deleted, each asks again and again.
TEST_F(KinesisSource, OneListingServesAllWhoAskedBeforeItAndFailuresAreASecondApart) {
    outcome_of<stream_listing> a;
    outcome_of<stream_listing> b;
    outcome_of<stream_listing> c;
    outcome_of<stream_listing> d;
    source.list_shards(a.take());
    source.list_shards(b.take());
    source.list_shards(c.take());
    EXPECT_EQ(api->waiting(), 1U);
    answer_listing({shard_named("a")});
    ASSERT_TRUE(a.how && *a.how);
    EXPECT_FALSE(b.how) << "its listing begins after it asked";
    EXPECT_EQ(api->waiting(), 1U) << "one for both";
    api->fail(scripted_api::failure(errc::not_found, "ResourceNotFoundException"));
    host.turn();
    ASSERT_TRUE(b.how && c.how);
    EXPECT_EQ(b.how->error().code, errc::not_found);
    EXPECT_EQ(c.how->error().code, errc::not_found);
    source.list_shards(d.take());
    host.turn();
    EXPECT_EQ(api->waiting(), 0U);
    host.pass(std::chrono::seconds{1});
    EXPECT_EQ(api->waiting(), 1U);
    answer_listing({shard_named("a")});
    ASSERT_TRUE(d.how && *d.how);
}

TEST_F(KinesisSource, AnExpiredTokenBeginsTheListingAnew) {
    outcome_of<stream_listing> listed;
    source.list_shards(listed.take());
    describe_stream_summary_reply described;
    described.summary = {"orders", "arn:aws:kinesis:eu-west-1:1:stream/orders", "ACTIVE", date, 24, 2};
    answer(described);
    answer(list_shards_reply{{shard_named("a")}, "page 2"});
    refuse(errc::expired_cursor, "ExpiredNextTokenException");
    EXPECT_EQ(asked<list_shards>().stream.name, "orders");
    answer(list_shards_reply{{shard_named("a"), shard_named("b")}, std::nullopt});
    EXPECT_EQ((*listed.how)->shards.size(), 2U);
}

TEST_F(KinesisSource, AListingOfAStreamThatIsMadeOrDeletedIsAnError) {
    for (const auto* status : {"CREATING", "DELETING", ""}) {
        outcome_of<stream_listing> listed;
        source.list_shards(listed.take());
        describe_stream_summary_reply described;
        described.summary = {"orders", "arn", status, date, 24, 2};
        answer(described);
        EXPECT_EQ((*listed.how).error().code, errc::unavailable) << status;
        host.pass(std::chrono::seconds{1});
    }
    outcome_of<stream_listing> listed;
    source.list_shards(listed.take());
    refuse(errc::not_found, "ResourceNotFoundException");
    EXPECT_EQ((*listed.how).error().code, errc::not_found);
    EXPECT_THAT((*listed.how).error().detail, HasSubstr("\"orders\" in eu-west-1"));
}

TEST_F(KinesisSource, AsksForEachStartPosition) {
    EXPECT_TRUE(open(from::trim_horizon{}));
    EXPECT_EQ(iterator.type, "TRIM_HORIZON");
    EXPECT_TRUE(open(from::latest{}));
    EXPECT_EQ(iterator.type, "LATEST");
    EXPECT_TRUE(open(from::timestamp{date}));
    EXPECT_EQ(iterator.type, "AT_TIMESTAMP");
    EXPECT_EQ(iterator.at, date);
    EXPECT_TRUE(open(from::after{{sequence_number{77}, 3}}));
    EXPECT_EQ(iterator.type, "AT_SEQUENCE_NUMBER");
    EXPECT_EQ(iterator.sequence, "77");
}

TEST_F(KinesisSource, GoesOnInsideAnAggregateBehindItsPosition) {
    const auto aggregate = from_base64("84mawgoBYQoBYhoFCAAaAXgaBggBGgJ5em/hvBQHqrxB4+DIjz9mi68=").value();
    const auto service = [&] {
        answer(reply_of({{{aggregate}, "a", "77", date}, {{"plain"}, "k", "78", date}}));
    };
    auto reply = read(open(from::after{{sequence_number{77}, 0}}).value(), service);
    EXPECT_THAT(data_of(reply), ElementsAre("yz", "plain"));
    EXPECT_EQ(reply->records->records()[0].position, (position{sequence_number{77}, 1}));
    EXPECT_EQ(reply->bytes, aggregate.size() + 1 + 5 + 1) << "as the service counts";

    reply = read(open(from::after{{sequence_number{77}, 1}}).value(), service);
    EXPECT_THAT(data_of(reply), ElementsAre("plain"));
    // The position is behind it for good: the next reply is not looked through.
    reply = read(*reply->next, [&] { answer(reply_of({{{"next"}, "k", "79", date}})); });
    EXPECT_THAT(data_of(reply), ElementsAre("next"));
    EXPECT_EQ(source.unpacked().aggregates, 2U);
    EXPECT_EQ(source.unpacked().sub_records, 4U);
    EXPECT_EQ(source.unpacked().sub_records_foreign, 0U);
}

TEST_F(KinesisSource, SaysOnceOfAShardThatRecordsWereLeftOutForTheirHashes) {
    const auto aggregate = from_base64("84mawgoBYQoBYhoFCAAaAXgaBggBGgJ5em/hvBQHqrxB4+DIjz9mi68=").value();
    outcome_of<read_cursor> opened;
    source.open(first, from::trim_horizon{}, opened.take());
    auto narrow = shard_named(first.value());
    narrow.hashes = {"0", "1"};
    answer_listing({narrow});
    answer(get_shard_iterator_reply{"it-1"});
    for (int i = 0; i < 2; ++i) {
        const auto reply = read(**opened.how, [&] {
            answer(reply_of({{{"plain"}, "k", "76", date}, {{aggregate}, "a", "77", date}}));
        });
        EXPECT_THAT(data_of(reply), ElementsAre("plain"));
        host.turn();
    }
    EXPECT_EQ(source.unpacked().sub_records_foreign, 4U);
    EXPECT_EQ(host.remembered().count("kinesis.foreign_records"), 1U);
}

TEST_F(KinesisSource, APositionWaitsThroughEmptyPages) {
    const auto cursor = open(from::after{{sequence_number{77}, 0}}).value();
    const auto empty = read(cursor, [&] { answer(reply_of({})); });
    EXPECT_THAT(data_of(empty), IsEmpty());
    const auto reply = read(*empty->next, [&] {
        EXPECT_EQ(asked<get_records>().iterator, "it-2");
        answer(reply_of({{{"old"}, "k", "77", date}, {{"new"}, "k", "78", date}}));
    });
    EXPECT_THAT(data_of(reply), ElementsAre("new"));
}

TEST_F(KinesisSource, AsksForRecordsByTheSizeOfThoseBefore) {
    const std::string large(10'000, 'x');
    auto cursor = open(from::trim_horizon{}).value();
    auto reply = read(cursor, [&] {
        EXPECT_LE(asked<get_records>().limit, 16) << "nothing is known of the size yet";
        answer(reply_of({{{large}, "k", "1", date}}));
    });
    reply = read(*reply->next, [&] {
        EXPECT_THAT(asked<get_records>().limit, testing::AllOf(testing::Gt(90), testing::Lt(106)));
        answer(reply_of({{{"small"}, "k", "2", date}}));
    });
    (void)read(*reply->next, [&] {
        EXPECT_LT(asked<get_records>().limit, 150) << "large ones may come again";
        answer(reply_of({}));
    });
    (void)read(
        cursor,
        [&] {
            EXPECT_EQ(asked<get_records>().limit, 1) << "a limit below one record";
            answer(reply_of({}));
        },
        {.records_max = 10, .bytes_max = 1}
    );
}

TEST_F(KinesisSource, AShardEndsByItsChildren) {
    auto last = reply_of({{{"x"}, "k", "1", date}}, std::nullopt);
    last.children.push_back({"shardId-000000000001", {first.value()}, {"0", "1"}});
    const auto reply = read(open(from::trim_horizon{}).value(), [&] { answer(last); });
    EXPECT_THAT(data_of(reply), ElementsAre("x"));
    EXPECT_EQ(reply->next, std::nullopt);
}

TEST_F(KinesisSource, WithoutIteratorAndChildrenTheListingTellsWhetherAShardHasEnded) {
    const auto cursor = open(from::trim_horizon{}).value();
    const auto childless = reply_of({{{"x"}, "k", "1", date}}, std::nullopt);
    const auto open_still = read(cursor, [&] {
        answer(childless);
        answer_listing({shard_named(first.value())});
    });
    ASSERT_FALSE(open_still);
    EXPECT_EQ(open_still.error().code, errc::unavailable);
    EXPECT_THAT(open_still.error().detail, HasSubstr("though it is open"));

    const auto ended = read(cursor, [&] {
        answer(childless);
        answer_listing({shard_named(first.value(), true)});
    });
    EXPECT_THAT(data_of(ended), ElementsAre("x"));
    EXPECT_EQ(ended->next, std::nullopt);
}

TEST_F(KinesisSource, APositionAtTheEndOfAClosedShardLeavesNothingToRead) {
    (void)open(from::trim_horizon{});
    outcome_of<read_cursor> opened;
    source.open(first, from::after{{sequence_number{9}, 0}}, opened.take());
    refuse(
        errc::invalid_argument,
        "InvalidArgumentException",
        "Invalid SequenceNumber for ShardIteratorType AFTER_SEQUENCE_NUMBER, SequenceNumber has reached max "
        "possible value for the shard"
    );
    const auto reply = read(opened.how->value(), [] { FAIL() << "nothing is to be asked"; });
    EXPECT_THAT(data_of(reply), IsEmpty());
    EXPECT_EQ(reply->next, std::nullopt);
}

TEST_F(KinesisSource, SaysWhatIsWrongWithAPosition) {
    (void)open(from::trim_horizon{});
    const std::vector<std::pair<std::string, errc>> texts{
        {"StartingSequenceNumber 495 used in GetShardIterator on shard shardId-000000000000 in stream orders "
         "under "
         "account 123456789012 is invalid because it did not come from this stream.",
         errc::conflict},
        {"Invalid StartingSequenceNumber. It encodes shardId-000000000007, while it was used in a call to a "
         "shard "
         "with shardId-000000000000",
         errc::invalid_argument},
        {"The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "
         "timestampInMillis: "
         "2, currentTimestampInMillis: 1",
         errc::unavailable},
        {"something new", errc::invalid_argument}};
    for (const auto& [text, code] : texts) {
        outcome_of<read_cursor> opened;
        source.open(first, from::after{{sequence_number{9}, 0}}, opened.take());
        refuse(errc::invalid_argument, "InvalidArgumentException", text);
        EXPECT_EQ(opened.how->error().code, code) << text;
        EXPECT_THAT(opened.how->error().detail, HasSubstr(first.value()));
    }
}

TEST_F(KinesisSource, EveryRefusalOfAnIteratorAsksForANewOne) {
    const auto cursor = open(from::trim_horizon{}).value();
    EXPECT_EQ(
        read(cursor, [&] { refuse(errc::expired_cursor, "ExpiredIteratorException"); }).error().code,
        errc::expired_cursor
    );
    EXPECT_EQ(
        read(
            cursor,
            [&] { refuse(errc::invalid_argument, "InvalidArgumentException", "Invalid ShardIterator."); }
        )
            .error()
            .code,
        errc::expired_cursor
    );
}

TEST_F(KinesisSource, ThrottlingIsToldAtOnceAndKeyTroubleByName) {
    const auto cursor = open(from::trim_horizon{}).value();
    const auto throttled = read(cursor, [&] {
        EXPECT_FALSE(api->next().wait_when_throttled);
        refuse(errc::throttled, "ProvisionedThroughputExceededException");
    });
    EXPECT_EQ(throttled.error().code, errc::throttled);
    const auto disabled =
        read(cursor, [&] { refuse(errc::permission_denied, "KMSDisabledException", "key 1"); });
    EXPECT_EQ(disabled.error().code, errc::permission_denied);
    EXPECT_THAT(disabled.error().detail, HasSubstr("KMSDisabledException"));
}

TEST_F(KinesisSource, OnlyAListingSaysThatAShardIsGone) {
    const auto cursor = open(from::trim_horizon{}).value();
    const auto missing = [&](auto&& then) {
        return read(cursor, [&] {
            refuse(errc::not_found, "ResourceNotFoundException");
            then();
        });
    };
    const auto stream_gone = missing([&] { refuse(errc::not_found, "ResourceNotFoundException"); });
    EXPECT_EQ(stream_gone.error().code, errc::unavailable) << "the stream may come back";
    host.pass(std::chrono::seconds{1});
    const auto there = missing([&] { answer_listing({shard_named(first.value())}); });
    EXPECT_EQ(there.error().code, errc::unavailable);
    const auto gone = missing([&] { answer_listing({shard_named("shardId-000000000005")}); });
    EXPECT_EQ(gone.error().code, errc::not_found);
}

TEST_F(KinesisSource, ANonsensicalReplyIsTriedAgain) {
    const auto cursor = open(from::trim_horizon{}).value();
    const auto reply = read(cursor, [&] {
        api->reply("garbled", date);
        host.turn();
    });
    EXPECT_EQ(reply.error().code, errc::unavailable);
    EXPECT_EQ(reply.error().retry, retry_advice::after_delay);
    EXPECT_THAT(reply.error().detail, HasSubstr("GetRecords"));
}

TEST_F(KinesisSource, SpeaksJsonToAnEndpointThatRefusesCbor) {
    outcome_of<stream_listing> listed;
    source.list_shards(listed.take());
    api->fail(
        {{errc::invalid_argument, retry_advice::never, false, "?"}, "UnknownOperationException", "", "", 404}
    );
    EXPECT_EQ(api->next().content_type, "application/x-amz-json-1.1");
    api->reply(
        R"({"StreamDescriptionSummary":{"StreamName":"orders","StreamStatus":"ACTIVE",)"
        R"("StreamCreationTimestamp":1.7E9,"RetentionPeriodHours":24}})",
        date
    );
    EXPECT_EQ(api->next().content_type, "application/x-amz-json-1.1") << "it is remembered";
    api->reply(
        R"({"Shards":[{"ShardId":"shardId-000000000000","HashKeyRange":{"StartingHashKey":"0",)"
        R"("EndingHashKey":"9"},"SequenceNumberRange":{"StartingSequenceNumber":"1"}}],"NextToken":null})",
        date
    );
    host.turn();
    ASSERT_TRUE(listed.how && *listed.how) << listed.how->error().detail;
    EXPECT_EQ((*listed.how)->shards.size(), 1U);
}

TEST_F(KinesisSource, AFailureInBothFormatsIsThatOfTheFirst) {
    outcome_of<stream_listing> listed;
    source.list_shards(listed.take());
    api->fail(
        {{errc::invalid_argument, retry_advice::never, false, "first"},
         "UnknownOperationException",
         "",
         "",
         404}
    );
    api->fail(
        {{errc::invalid_argument, retry_advice::never, false, "second"},
         "UnknownOperationException",
         "",
         "",
         404}
    );
    host.turn();
    EXPECT_THAT(listed.how->error().detail, HasSubstr("first"));
    host.pass(std::chrono::seconds{1});
    source.list_shards([](const auto&) {});
    EXPECT_EQ(api->next().content_type, "application/x-amz-cbor-1.1");
}

TEST(KinesisSourceEnd, CompletesWhatIsUnderWayAsCancelled) {
    step_host host;
    outcome_of<stream_listing> listed;
    outcome_of<read_cursor> opened;
    {
        kinesis_source source{
            host, {.region = "eu-west-1", .stream = "orders"}, std::make_unique<scripted_api>()};
        source.list_shards(listed.take());
        source.open(first, from::latest{}, opened.take());
    }
    host.turn();
    EXPECT_EQ(listed.how->error().code, errc::cancelled);
    EXPECT_EQ(opened.how->error().code, errc::cancelled);
}

TEST(KinesisCursor, IsReadBackAndNothingElseIs) {
    step_host host;
    kinesis_source source{
        host, {.region = "eu-west-1", .stream = "orders"}, std::make_unique<scripted_api>()};
    for (const auto* text :
         {"",
          "x",
          "k1",
          "k1:",
          "k1:1",
          "k1:1::0",
          "k1:1::0:",
          "k1:x::0:it",
          "k1:1:x:0:it",
          "k2:1::0:it",
          "1:k1:end"}) {
        outcome_of<read_reply> read;
        source.read(first, read_cursor{text}, {}, read.take());
        host.turn();
        EXPECT_EQ(read.how->error().code, errc::invalid_argument) << text;
    }
}

}  // namespace
}  // namespace millrace::test
