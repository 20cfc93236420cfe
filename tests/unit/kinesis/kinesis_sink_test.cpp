#include "kinesis_sink.hpp"

#include "kinesis/codec.hpp"
#include "kinesis/write_messages.hpp"
#include "relay/poison.hpp"
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
using testing::Pair;
using testing::SizeIs;

struct row_spec {
    std::optional<std::string> key;
    std::optional<std::string> value{"v"};
    std::vector<record_header> headers{};
    std::string topic{"orders"};
};

class KinesisSink : public testing::Test {
protected:
    std::vector<outgoing_row> rows(const std::vector<row_spec>& specs) {
        auto batch = std::make_shared<row_batch>();
        batch->reserve(specs.size());
        for (const auto& s : specs) {
            outbox_row row;
            row.id = row_id{++last_id};
            row.topic = batch->store(s.topic);
            if (s.key) row.key = batch->store(*s.key);
            if (s.value) row.value = batch->store(*s.value);
            row.headers = batch->store(s.headers);
            batch->add(row);
        }
        std::vector<outgoing_row> out;
        for (const auto& row : batch->rows())
            out.push_back({&row, batch});
        return out;
    }
    std::shared_ptr<std::optional<result<publish_outcome>>> publish(
        channel where, const std::vector<row_spec>& specs
    ) {
        auto told = std::make_shared<std::optional<result<publish_outcome>>>();
        sink->publish(where, rows(specs), epoch{1}, [told](auto how) {
            EXPECT_FALSE(*told) << "completed twice";
            told->emplace(std::move(how));
        });
        return told;
    }
    /// The keys of the oldest call; `put` keeps what the views point into.
    std::vector<std::string> keys() {
        body = api->next().body;
        put = {};
        EXPECT_TRUE(decode_into(put, body, wire::cbor));
        std::vector<std::string> all;
        for (const auto& r : put.records)
            all.emplace_back(r.key);
        return all;
    }
    void answer(const std::vector<std::optional<std::string>>& codes) {
        put_records_reply reply;
        for (const auto& code : codes)
            reply.results.push_back(
                {"1", "s", code, code ? std::optional<std::string>("slow down") : std::nullopt}
            );
        api->reply(encode(reply, wire::cbor));
        host.turn();
    }
    static std::vector<std::pair<std::int64_t, errc>> failures(
        const std::optional<result<publish_outcome>>& told
    ) {
        std::vector<std::pair<std::int64_t, errc>> all;
        EXPECT_TRUE(told && *told);
        if (told && *told)
            for (const auto& f : (*told)->failures)
                all.emplace_back(f.id.value(), f.why.code);
        return all;
    }

    step_host host;
    scripted_api* api{new scripted_api};
    std::unique_ptr<kinesis_sink> sink{std::make_unique<kinesis_sink>(
        host, kinesis_address{.region = "eu-west-1"}, std::unique_ptr<aws::api>(api)
    )};
    std::int64_t last_id{0};
    std::string body;
    put_records put;
};

TEST_F(KinesisSink, PutsManyKeysInOneCallThatIsNeverSentTwiceByItself) {
    const auto told = publish(channel::main, {{"a"}, {"b"}, {"a"}, {std::nullopt}});
    EXPECT_FALSE(api->next().repeatable);
    EXPECT_THAT(keys(), ElementsAre("a", "b", SizeIs(15)));
    EXPECT_EQ(put.stream.name, "orders");
    answer({{}, {}, {}});
    EXPECT_FALSE(*told) << "a row is left";
    EXPECT_THAT(keys(), ElementsAre("a"));
    answer({{}});
    EXPECT_THAT(failures(*told), IsEmpty());
}

TEST_F(KinesisSink, APartialFailureHoldsBackOnlyItsKeyAndIsTriedAgain) {
    const auto told = publish(channel::main, {{"a"}, {"b"}, {"a"}});
    (void)keys();
    answer({"ProvisionedThroughputExceededException", {}});
    EXPECT_EQ(api->waiting(), 0U);
    host.pass(std::chrono::seconds{1});
    EXPECT_THAT(keys(), ElementsAre("a"));
    answer({{}});
    EXPECT_THAT(keys(), ElementsAre("a"));
    answer({{}});
    EXPECT_THAT(failures(*told), IsEmpty());
}

TEST_F(KinesisSink, ALostReplyIsInDoubtAndStopsMain) {
    const auto told = publish(channel::main, {{"a"}, {"a"}});
    api->fail(scripted_api::failure(errc::unavailable, "", retry_advice::after_delay, true));
    host.turn();
    EXPECT_THAT(failures(*told), ElementsAre(Pair(1, errc::unavailable), Pair(2, errc::purged)));
    EXPECT_TRUE((**told)->failures[0].why.in_doubt);
    const auto behind = publish(channel::main, {{"b"}});
    EXPECT_FALSE(*behind) << "not told inside the call";
    host.turn();
    EXPECT_THAT(failures(*behind), ElementsAre(Pair(3, errc::purged)));
    EXPECT_EQ(api->waiting(), 0U) << "main stands until a reset";
}

TEST_F(KinesisSink, AReplyOfTheWrongLengthIsInDoubt) {
    const auto told = publish(channel::main, {{"a"}, {"b"}});
    answer({{}});
    ASSERT_THAT(failures(*told), ElementsAre(Pair(1, errc::unavailable), Pair(2, errc::unavailable)));
    EXPECT_TRUE((**told)->failures[0].why.in_doubt);
}

TEST_F(KinesisSink, ARefusedCallBlamesItsRowsTogetherAndOneRowAlone) {
    const auto both = publish(channel::main, {{"a"}, {"b"}});
    api->fail(scripted_api::failure(errc::invalid_argument, "ValidationException"));
    host.turn();
    EXPECT_THAT(failures(*both), ElementsAre(Pair(1, errc::refused_record), Pair(2, errc::refused_record)));
    EXPECT_TRUE((**both)->failures[0].shared_blame);

    const auto alone = publish(channel::probe, {{"a"}});
    api->fail(scripted_api::failure(errc::invalid_argument, "ValidationException"));
    host.turn();
    EXPECT_THAT(failures(*alone), ElementsAre(Pair(3, errc::refused_record)));
    EXPECT_FALSE((**alone)->failures[0].shared_blame);
    EXPECT_EQ((**alone)->failures[0].why.retry, retry_advice::never);
}

// Another service, a gateway or a proxy answered: that must not send one row to the dead letters.
TEST_F(KinesisSink, ARefusalThatIsNoWordAboutRecordsBlamesNoRow) {
    const auto blames = [](const auto& told) { return judge((**told)->failures.at(0).why, true); };
    for (const auto* type :
         {"UnknownOperationException", "SerializationException", "UnsupportedMediaType", "Nonsense"}) {
        for (const auto retry : {retry_advice::never, retry_advice::after_delay}) {
            for (const auto where : {channel::main, channel::probe}) {
                const auto told = publish(where, {{"a"}});
                while (api->waiting() > 0) {  // in CBOR, then in JSON
                    api->fail(scripted_api::failure(errc::invalid_argument, type, retry));
                    host.turn();
                }
                ASSERT_THAT(failures(*told), SizeIs(1)) << type;
                EXPECT_EQ(blames(told), blame::none) << type;
                sink->reset_main([](const auto&) {});
                host.turn();
            }
        }
    }
}

TEST_F(KinesisSink, ABodyTooLargeForAProxyGoesInSmallerCallsAndARowAloneMayMend) {
    const auto told = publish(channel::main, {{"a"}, {"b"}});
    auto too_large = scripted_api::failure(errc::invalid_argument, "");
    too_large.status = 413;
    api->fail(too_large);
    host.turn();
    EXPECT_THAT(keys(), ElementsAre("a"));
    answer({{}});
    EXPECT_THAT(keys(), ElementsAre("b"));
    api->fail(too_large);
    host.turn();
    EXPECT_THAT(failures(*told), ElementsAre(Pair(2, errc::refused_record)));
    EXPECT_EQ(judge((**told)->failures[0].why, true), blame::mends);
}

TEST_F(KinesisSink, SaysOfARefusedRecordTheServicesFirstLineAlone) {
    put_result failed{"1", "s", "InternalFailure", "bad\x01 Value 'secret' at 'key' failed\nmore"};
    const auto told = publish(channel::probe, {{"a"}});
    api->reply(encode(put_records_reply{.results = {failed}}, wire::cbor));
    host.turn();
    ASSERT_THAT(failures(*told), SizeIs(1));
    EXPECT_THAT((**told)->failures[0].why.detail, HasSubstr("bad  Value '...' at 'key' failed"));
    EXPECT_THAT((**told)->failures[0].why.detail, testing::Not(HasSubstr("more")));
}

TEST_F(KinesisSink, WhatAStreamDeniesIsToldOfItsTopic) {
    for (const auto* type : {"ResourceNotFoundException", "AccessDeniedException", "KMSDisabledException"}) {
        const auto told = publish(channel::probe, {{"a"}});
        api->fail(scripted_api::failure(errc::permission_denied, type));
        host.turn();
        ASSERT_THAT(failures(*told), SizeIs(1)) << type;
        EXPECT_EQ((**told)->failures[0].why.code, errc::refused_topic) << type;
        EXPECT_EQ((**told)->failures[0].why.retry, retry_advice::after_delay) << "it may be mended";
    }
}

TEST_F(KinesisSink, AResetWaitsForWhatIsOnItsWay) {
    const auto first = publish(channel::main, {{"a"}, {"a"}});
    bool reset = false;
    sink->reset_main([&](const auto& how) { reset = how.has_value(); });
    host.turn();
    EXPECT_FALSE(reset);
    answer({{}});
    EXPECT_TRUE(reset);
    EXPECT_THAT(failures(*first), ElementsAre(Pair(2, errc::purged)));
    (void)publish(channel::main, {{"a"}});
    EXPECT_THAT(keys(), ElementsAre("a"));
}

TEST_F(KinesisSink, KnowsBeforehandWhatKinesisCannotHold) {
    const auto suspect = [&](const row_spec& spec) { return sink->suspect(*rows({spec}).front().row); };
    EXPECT_EQ(suspect({"k", ""}), std::nullopt) << "empty data are data";
    EXPECT_EQ(suspect({std::nullopt, "v"}), std::nullopt);
    EXPECT_EQ(suspect({std::string(256, 'k'), "v"}), std::nullopt);
    EXPECT_THAT(suspect({"k", std::nullopt})->detail, HasSubstr("tombstone"));
    EXPECT_THAT(suspect({"", "v"})->detail, HasSubstr("empty key"));
    EXPECT_THAT(suspect({std::string("\xff"), "v"})->detail, HasSubstr("UTF-8"));
    EXPECT_THAT(suspect({std::string(257, 'k'), "v"})->detail, HasSubstr("257 characters"));
    std::string beyond;
    for (int i = 0; i < 129; ++i)
        beyond += "\xf0\x9f\x98\x80";
    EXPECT_THAT(suspect({beyond, "v"})->detail, HasSubstr("258 characters")) << "as Java counts";
    EXPECT_THAT(suspect({"k", std::string(1 << 20, 'x')})->detail, HasSubstr("1048577 bytes"));
    EXPECT_EQ(suspect({"k", std::string((1 << 20) - 1, 'x')}), std::nullopt);
    EXPECT_EQ(suspect({"k", "v", {}, "no/stream"})->code, errc::refused_topic);
    for (const auto* hash : {"x", "", "007", "00", "-1", "+1", "340282366920938463463374607431768211456"})
        EXPECT_THAT(suspect({"k", "v", {{explicit_hash_header, hash}}})->detail, HasSubstr("2^128")) << hash;
    for (const auto* hash : {"0", "70", "340282366920938463463374607431768211455"})
        EXPECT_EQ(suspect({"k", "v", {{explicit_hash_header, hash}}}), std::nullopt) << hash;
    EXPECT_EQ(suspect({"k", "v", {{"trace", "1"}}}), std::nullopt) << "headers are dropped by default";

    const kinesis_losses strict{.drop_headers = false};
    const auto with_headers = rows({{"k", "v", {{"trace", "1"}}}, {"k", "v", {{explicit_hash_header, "1"}}}});
    EXPECT_TRUE(why_refused(*with_headers[0].row, strict, true));
    EXPECT_FALSE(why_refused(*with_headers[1].row, strict, true)) << "it is not lost";
    EXPECT_FALSE(why_refused(*rows({{"k", std::nullopt}}).front().row, {.empty_tombstones = true}, true));
}

TEST_F(KinesisSink, TakesTheExplicitHashAndSaysOnceThatHeadersAreDropped) {
    (void)publish(
        channel::main,
        {{"a", "v", {{explicit_hash_header, "77"}}}, {"b", "v", {{"trace", "1"}}}, {"c", "v", {{"t", "2"}}}}
    );
    EXPECT_THAT(keys(), ElementsAre("a", "b", "c"));
    EXPECT_EQ(put.records[0].explicit_hash, "77");
    EXPECT_EQ(host.remembered().count("kinesis.headers_dropped"), 1U);
}

TEST_F(KinesisSink, ItsEndCompletesWhatWaitsAsCancelled) {
    const auto main = publish(channel::main, {{"a"}, {"a"}});
    const auto probe = publish(channel::probe, {{"b"}});
    std::optional<errc> reset;
    sink->reset_main([&](const auto& how) { reset = how ? errc::internal : how.error().code; });
    sink.reset();
    host.turn();
    EXPECT_EQ(main->value().error().code, errc::cancelled);
    EXPECT_EQ(probe->value().error().code, errc::cancelled);
    EXPECT_EQ(reset, errc::cancelled);
}

}  // namespace
}  // namespace millrace::test
