#include "kinesis/codec.hpp"

#include "kinesis/base64.hpp"
#include "kinesis/write_messages.hpp"
#include "record/bytes_text.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace::aws::kinesis {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

using full_reply = get_records_reply_with<std::vector<stored_record>>;

std::string hex(std::string_view digits) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
        bytes.push_back(static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
    return bytes;
}

struct seen_record {
    std::string sequence;
    std::string key;
    std::string data;
    std::int64_t arrival{0};

    bool operator==(const seen_record&) const = default;
};

struct seen_reply {
    result<get_records_reply> reply{tl::unexpected(error{})};
    std::vector<seen_record> records;
};

seen_reply records_of(const std::string& bytes, wire format) {
    seen_reply seen;
    record_batch batch{shard_id{"s"}};
    std::vector<record> records;
    seen.reply = decode_records(bytes, format, batch, [&](const record& r) {
        records.push_back(r);
        return true;
    });
    for (const auto& r : records) {  // what was viewed is still there
        seen.records.push_back(
            {r.position.sequence.to_string(),
             std::string(*r.key),
             std::string(*r.data),
             r.arrival.time_since_epoch().count()}
        );
    }
    return seen;
}

TEST(KinesisCodec, WritesRequestsInJson) {
    EXPECT_EQ(
        encode(get_records{.iterator = "it\"\n", .limit = 7}, wire::json),
        R"({"ShardIterator":"it\"\u000a","Limit":7})"
    );
    EXPECT_EQ(encode(list_shards{.next_token = "t"}, wire::json), R"({"NextToken":"t"})")
        << "a token stands alone";
    const get_shard_iterator at{
        .stream = {"orders", ""},
        .shard = "s",
        .type = "AT_TIMESTAMP",
        .at = wall_time{milliseconds{1'700'000'000'007}}};
    EXPECT_EQ(
        encode(at, wire::json),
        R"({"StreamName":"orders","ShardId":"s","ShardIteratorType":"AT_TIMESTAMP","Timestamp":1700000000.007})"
    );
    const put_records put{{"", "arn:x"}, {{{"ab"}, "k", ""}, {{""}, "k", "5"}}};
    EXPECT_EQ(
        encode(put, wire::json),
        R"({"StreamARN":"arn:x","Records":[{"Data":"YWI=","PartitionKey":"k"},)"
        R"({"Data":"","PartitionKey":"k","ExplicitHashKey":"5"}]})"
    );
}

TEST(KinesisCodec, WritesRequestsInCbor) {
    EXPECT_EQ(
        encode(get_records{.iterator = "it", .limit = 300}, wire::cbor),
        hex("bf"
            "6d53686172644974657261746f72"  // ShardIterator
            "626974"
            "654c696d6974"  // Limit
            "19012c"
            "ff")
    );
    const get_shard_iterator at{.shard = "s", .type = "T", .at = wall_time{milliseconds{-1}}};
    EXPECT_THAT(encode(at, wire::cbor), HasSubstr(hex("c120"))) << "tag 1 and milliseconds";
    const put_records put{{"", ""}, {{{std::string_view("\0\xff", 2)}, "k", ""}}};
    EXPECT_THAT(encode(put, wire::cbor), HasSubstr(hex("4200ff"))) << "bytes as they are";
}

TEST(KinesisCodec, ReadsRecordsThatEmulatorsAndAwsSend) {
    // Untagged milliseconds, null for what is missing, definite lengths.
    const auto definite =
        hex("a3"
            "675265636f726473"  // Records
            "81a5"
            "6e53657175656e63654e756d626572"
            "6237"
            "37"  // SequenceNumber: "77"
            "781b417070726f78696d6174654172726976616c54696d657374616d70"
            "1b0000018bcfe56807"
            "6444617461"
            "4200ff"
            "6c506172746974696f6e4b6579"
            "616b"
            "6e456e6372797074696f6e54797065"
            "f6"
            "714e65787453686172644974657261746f72"
            "626974"
            "724d696c6c6973426568696e644c6174657374"
            "05");
    const auto seen = records_of(definite, wire::cbor);
    ASSERT_TRUE(seen.reply) << seen.reply.error().detail;
    EXPECT_EQ(
        seen.records, (std::vector<seen_record>{{"77", "k", std::string("\0\xff", 2), 1'700'000'000'007}})
    );
    EXPECT_EQ(seen.reply->next_iterator, "it");
    EXPECT_EQ(seen.reply->millis_behind, 5);

    const auto in_json = records_of(
        R"({"Records":[{"SequenceNumber":"77","ApproximateArrivalTimestamp":1.700000000007E9,"Data":"AP8=",)"
        R"("PartitionKey":"k\u00e4","EncryptionType":null,"New":[{"x":1}]}],"NextShardIterator":null,)"
        R"("ChildShards":[{"ShardId":"c","ParentShards":["p","q"],"HashKeyRange":{"StartingHashKey":"0","EndingHashKey":"9"}}]})",
        wire::json
    );
    ASSERT_TRUE(in_json.reply) << in_json.reply.error().detail;
    EXPECT_EQ(
        in_json.records, (std::vector<seen_record>{{"77", "kä", std::string("\0\xff", 2), 1'700'000'000'007}})
    );
    EXPECT_EQ(in_json.reply->next_iterator, std::nullopt);
    ASSERT_THAT(in_json.reply->children, SizeIs(1));
    EXPECT_EQ(in_json.reply->children[0].parents, (std::vector<std::string>{"p", "q"}));
    EXPECT_EQ(in_json.reply->children[0].hashes.to, "9");
}

TEST(KinesisCodec, ReadsDataThatAStandInSendsAsBase64InCbor) {
    // {"Records": [{"SequenceNumber": "1", "PartitionKey": "k", "Data": "AP8K"}]}
    const auto reply = [](const char* data) {
        return hex("a1675265636f72647381a36e53657175656e63654e756d62657261316c506172746974696f6e4b6579616b644"
                   "4617461") +
               hex(data);
    };
    const auto seen = records_of(reply("644150384b"), wire::cbor);
    ASSERT_TRUE(seen.reply) << seen.reply.error().detail;
    EXPECT_EQ(seen.records[0].data, std::string("\0\xff\n", 3));
    EXPECT_EQ(records_of(reply("60"), wire::cbor).records[0].data, "");
    EXPECT_FALSE(records_of(reply("6341503d"), wire::cbor).reply) << "neither bytes nor base64";
}

TEST(KinesisCodec, ReadsTextThatComesInPartsAndSkipsWhatItDoesNotKnow) {
    // {_ "New": {_ "a": [_ (_ h'00', h'01'), 1.5, true, undefined]}, "ShardIterator": (_ "i", "t")}
    const auto bytes =
        hex("bf"
            "634e6577"
            "bf6161"
            "9f"
            "5f41004101ff"
            "f93e00"
            "f5"
            "f7"
            "ff"
            "ff"
            "6d53686172644974657261746f72"
            "7f61696174ff"
            "ff");
    const auto read = decode<get_shard_iterator_reply>(bytes, wire::cbor);
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(read->iterator, "it");
}

TEST(KinesisCodec, RefusesNonsense) {
    const auto refused = [](const std::string& bytes, wire format) {
        const auto read = decode<get_shard_iterator_reply>(bytes, format);
        EXPECT_FALSE(read);
        if (!read) {
            EXPECT_EQ(read.error().code, errc::unavailable);
        }
        return !read;
    };
    for (const auto* digits :
         {"",
          "80",      // a list
          "bf",      // no end
          "bfff00",  // something behind the end
          "a1"
          "01"
          "616b",  // a number for a name
          "a1"
          "6d53686172644974657261746f72"
          "05",  // a number for the iterator
          "a1"
          "6d53686172644974657261746f72"
          "4161",  // bytes for the iterator
          "a1"
          "6d53686172644974657261746f72"
          "7f4161ff",  // bytes among its parts
          "a1"
          "6161"
          "ff",  // an end where a value belongs
          "a1"
          "6161"
          "1c",  // no such item
          "a1"
          "6161"
          "9affffffff",  // a list longer than the input
          "bbffffffffffffffff"})
        EXPECT_TRUE(refused(hex(digits), wire::cbor)) << digits;
    EXPECT_TRUE(refused("a1" + hex("6161") + std::string(100'000, '\x81'), wire::cbor))
        << "nested too deeply";
    EXPECT_TRUE(refused(hex("a16161") + std::string(33, '\x81') + "\x01", wire::cbor)) << "nested too deeply";
    EXPECT_TRUE(refused(hex("a16161") + std::string(9, '\xc1') + "\x01", wire::cbor)) << "too many tags";
    for (const auto* text :
         {"", "[]", "{", "{} x", R"({"ShardIterator":5})", R"({"ShardIterator":{}})", "<html></html>"})
        EXPECT_TRUE(refused(text, wire::json)) << text;
    EXPECT_TRUE(refused(R"({"x":)" + std::string(100'000, '[') + "}", wire::json)) << "nested too deeply";
}

TEST(KinesisCodec, RefusesListsThatNoReplyHas) {
    const auto shards = [](std::size_t count) {
        return "\xa1\x66Shards\x9f" + std::string(count, '\xa0') + "\xff";
    };
    const auto read = [](std::string bytes) {
        return decode<list_shards_reply>(std::move(bytes), wire::cbor);
    };
    ASSERT_TRUE(read(shards(10'000)));
    EXPECT_EQ(read(shards(10'000))->shards.size(), 10'000U);
    EXPECT_FALSE(read(shards(10'001)));
    std::string json = R"({"Records":[{})";
    for (int i = 0; i < 10'000; ++i)
        json += ",{}";
    EXPECT_FALSE(decode<put_failures_reply>(json + "]}", wire::json));
}

TEST(KinesisCodec, RefusesRecordsWithoutNumberKeyOrData) {
    const auto refused = [](const std::string& record) {
        return !records_of(R"({"Records":[)" + record + "]}", wire::json).reply;
    };
    EXPECT_FALSE(refused(R"({"SequenceNumber":"1","PartitionKey":"k","Data":""})"));
    EXPECT_TRUE(refused(R"({"PartitionKey":"k","Data":""})"));
    EXPECT_TRUE(refused(R"({"SequenceNumber":"x","PartitionKey":"k","Data":""})"));
    EXPECT_TRUE(refused(R"({"SequenceNumber":"1","Data":""})"));
    EXPECT_TRUE(refused(R"({"SequenceNumber":"1","PartitionKey":"k"})"));
    EXPECT_TRUE(refused(R"({"SequenceNumber":"1","PartitionKey":"k","Data":"?"})"));
    EXPECT_TRUE(
        refused(R"({"SequenceNumber":"1","PartitionKey":"k","Data":"","ApproximateArrivalTimestamp":1e300})")
    );
}

TEST(KinesisCodec, KnowsTheFormatOfAReply) {
    EXPECT_EQ(wire_of("application/x-amz-cbor-1.1"), wire::cbor);
    EXPECT_EQ(wire_of("application/x-amz-json-1.1; charset=utf-8"), wire::json);
    EXPECT_EQ(wire_of("application/json"), wire::json);
    EXPECT_EQ(wire_of("application/x-amz-cbor-1.10"), std::nullopt);
    EXPECT_EQ(wire_of("text/html"), std::nullopt);
}

TEST(KinesisCodec, AnEmptyBodyIsAReplyWithoutContent) {
    for (const auto format : {wire::cbor, wire::json}) {
        EXPECT_TRUE(decode<empty_reply>("", format));
        EXPECT_TRUE(decode<empty_reply>(encode(empty_reply{}, format), format));
        EXPECT_FALSE(decode<put_records_reply>("", format));
    }
}

RC_GTEST_PROP(KinesisCodec, ReadsTheSameRecordsFromCborAndJson, ()) {
    struct source {
        std::string sequence, key, data;
        std::int64_t arrival;
    };
    const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    const auto sources = *rc::gen::container<std::vector<source>>(rc::gen::construct<source>(
        rc::gen::map(
            rc::gen::inRange<std::uint64_t>(0, 1'000'000'000), [](auto n) { return std::to_string(n); }
        ),
        text,
        rc::gen::arbitrary<std::string>(),
        rc::gen::inRange<std::int64_t>(0, 4'000'000'000'000)
    ));
    full_reply reply;
    std::vector<seen_record> expected;
    for (const auto& s : sources) {
        reply.records.push_back({{s.data}, s.key, s.sequence, wall_time{milliseconds{s.arrival}}});
        expected.push_back({s.sequence, s.key, s.data, s.arrival});
    }
    reply.millis_behind = *rc::gen::inRange<std::int64_t>(0, 100'000);
    if (*rc::gen::arbitrary<bool>()) reply.next_iterator = *text;
    // An empty key is no key on the wire.
    RC_PRE(std::ranges::none_of(expected, [](const auto& r) { return r.key.empty(); }));
    for (const auto format : {wire::cbor, wire::json}) {
        const auto seen = records_of(encode(reply, format), format);
        RC_ASSERT(seen.reply.has_value());
        RC_ASSERT(seen.records == expected);
        RC_ASSERT(seen.reply->next_iterator == reply.next_iterator);
        RC_ASSERT(seen.reply->millis_behind == reply.millis_behind);
    }
}

RC_GTEST_PROP(KinesisCodec, PutsOutcomesThroughBothFormatsAlike, ()) {
    const auto text = rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    put_records_reply reply;
    reply.failed = *rc::gen::arbitrary<std::int64_t>();
    const auto count = *rc::gen::inRange(0, 10);
    for (int i = 0; i < count; ++i)
        reply.results.push_back(
            {*rc::gen::maybe(text).as("number") ? std::optional<std::string>("1") : std::nullopt,
             {},
             *text,
             {}}
        );
    for (const auto format : {wire::cbor, wire::json}) {
        const auto read = decode<put_records_reply>(encode(reply, format), format);
        RC_ASSERT(read.has_value());
        RC_ASSERT(read->failed == reply.failed);
        RC_ASSERT(read->results.size() == reply.results.size());
        for (std::size_t i = 0; i < reply.results.size(); ++i) {
            RC_ASSERT(read->results[i].sequence == reply.results[i].sequence);
            RC_ASSERT(read->results[i].error_code == reply.results[i].error_code);
        }
    }
}

RC_GTEST_PROP(Base64OfPayloads, IsThatOfTheSlowOne, (const std::string& bytes)) {
    std::string fast = "x";
    append_base64(fast, bytes);
    RC_ASSERT(fast == "x" + to_base64(bytes));
    std::string back = "y";
    RC_ASSERT(append_from_base64(back, std::string_view(fast).substr(1)));
    RC_ASSERT(back == "y" + bytes);
}

RC_GTEST_PROP(Base64OfPayloads, RefusesWhatTheSlowOneRefuses, ()) {
    const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("AB/+=z9?\n\xff")));
    std::string out = "kept";
    const auto slow = from_base64(text);
    RC_ASSERT(append_from_base64(out, text) == slow.has_value());
    RC_ASSERT(out == "kept" + slow.value_or(""));
}

}  // namespace
}  // namespace millrace::aws::kinesis
