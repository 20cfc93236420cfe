#include "registry_codec.hpp"

#include <string>
#include <utility>

#include <boost/json.hpp>
#include <gmock/gmock.h>

namespace millrace::registry {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const question latest = ask_version{"a-value", std::nullopt};

std::shared_ptr<const schema_text> text(std::string written, schema_type type = schema_type::avro) {
    return std::make_shared<const schema_text>(schema_text{type, std::move(written), {}});
}

std::string why_not(const question& what, std::string_view body, const reply_limits& limits = {}) {
    const auto read = decode(what, body, limits);
    if (read) return "it was read";
    EXPECT_EQ(read.error().code, errc::corrupt);
    return read.error().detail;
}

TEST(RegistryCodec, AsksForVersionsAndIdsByPath) {
    EXPECT_EQ(encode(latest).value(), (wire_request{"GET", "/subjects/a-value/versions/latest", ""}));
    EXPECT_EQ(
        encode(ask_version{"a-value", 17}).value(), (wire_request{"GET", "/subjects/a-value/versions/17", ""})
    );
    EXPECT_EQ(encode(ask_id{2'147'483'647}).value(), (wire_request{"GET", "/schemas/ids/2147483647", ""}));
}

TEST(RegistryCodec, EncodesEachByteOfASubjectThatAPathCannotHold) {
    EXPECT_EQ(
        encode(ask_version{"a/b c:é?#%+&.~_-Z9", 1}).value().path,
        "/subjects/a%2Fb%20c%3A%C3%A9%3F%23%25%2B%26.~_-Z9/versions/1"
    );
}

TEST(RegistryCodec, SendsASchemaWithItsTypeAndReferences) {
    auto schema = schema_text{schema_type::protobuf, "syntax = \"proto3\";", {{"o.proto", "other", 3}}};
    const register_text what{"p-value", std::make_shared<const schema_text>(schema)};
    const auto sent = encode(what).value();
    EXPECT_EQ(sent.method, "POST");
    EXPECT_EQ(sent.path, "/subjects/p-value/versions");
    EXPECT_EQ(
        boost::json::parse(sent.body),
        boost::json::parse(
            R"({"schema":"syntax = \"proto3\";","schemaType":"PROTOBUF",
                "references":[{"name":"o.proto","subject":"other","version":3}]})"
        )
    );
    const auto looked_up = encode(ask_text{"a-value", text("\"int\"")}).value();
    EXPECT_EQ(looked_up.path, "/subjects/a-value");
    EXPECT_EQ(boost::json::parse(looked_up.body), boost::json::parse(R"({"schema":"\"int\""})"));
}

TEST(RegistryCodec, RefusesSubjectsAndNumbersThatCannotBe) {
    for (const std::string subject : {"", ".", "..", "a\nb", "a\x7f", "\xff\xfe"}) {
        const auto encoded = encode(ask_version{subject, std::nullopt});
        ASSERT_FALSE(encoded) << subject;
        EXPECT_EQ(encoded.error().code, errc::invalid_argument);
    }
    EXPECT_FALSE(encode(ask_version{std::string(1'001, 'x'), std::nullopt}));
    EXPECT_TRUE(encode(ask_version{std::string(1'000, 'x'), std::nullopt}));
    EXPECT_TRUE(encode(ask_version{"...", std::nullopt}));
    EXPECT_FALSE(encode(ask_version{"a", 0}));
    EXPECT_FALSE(encode(ask_version{"a", -1}));
    EXPECT_FALSE(encode(ask_id{0}));
    EXPECT_FALSE(encode(ask_id{2'147'483'648}));
}

TEST(RegistryCodec, ReadsAVersionAsConfluentsRegistryWritesIt) {
    const auto read = decode(
        latest,
        R"({"subject":"a-value","version":2,"id":7,"guid":"1b4e28ba-2fa1-11d2-883f-0016d3cca427","schemaType":"JSON",
            "references":[{"name":"n","subject":"s","version":4}],"schema":"{}","ts":1,"deleted":false})"
    );
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(read->id, 7U);
    EXPECT_EQ(read->version, 2);
    EXPECT_EQ(read->subject, "a-value");
    EXPECT_EQ(read->guid, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
    EXPECT_EQ(*read->schema, (schema_text{schema_type::json, "{}", {{"n", "s", 4}}}));
}

TEST(RegistryCodec, TakesASchemaWithoutATypeForAvro) {
    const auto read =
        decode(latest, R"({"subject":"a-value","version":1,"id":1,"schema":"\"int\"","references":null})");
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(*read->schema, (schema_text{schema_type::avro, "\"int\"", {}}));
    EXPECT_EQ(read->guid, "");
}

TEST(RegistryCodec, KnowsTheIdThatItAskedFor) {
    const auto read = decode(ask_id{9}, R"({"schema":"\"int\"","schemaType":"AVRO","references":[]})");
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(read->id, 9U);
    EXPECT_EQ(read->version, 0);
}

TEST(RegistryCodec, KeepsItsOwnTextOfASchemaThatItGave) {
    const auto own = text("message", schema_type::protobuf);
    const auto found = decode(ask_text{"p", own}, R"({"subject":"p","version":3,"id":4,"schema":"MESSAGE"})");
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(found->schema, own);
    EXPECT_EQ(found->version, 3);
    const auto made = decode(register_text{"p", own}, R"({"id":4})");
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(made->schema, own);
    EXPECT_EQ(made->version, 0);
    EXPECT_THAT(why_not(ask_text{"p", own}, R"({"id":4})"), HasSubstr("has no \"version\""));
}

TEST(RegistryCodec, RefusesRepliesThatAreNotWhatWasAskedFor) {
    const auto with = [](const std::string& members) { return R"({"schema":"secret text")" + members + "}"; };
    const std::pair<std::string, std::string> all[] = {
        {"", "is no JSON object"},
        {"<html>", "is no JSON object"},
        {"[]", "is no JSON object"},
        {R"({"id":1,"version":1,"schema":"x"} and more)", "is no JSON object"},
        {R"({"id":1,"version":1})", "has no \"schema\""},
        {R"({"id":1,"version":1,"schema":{}})", "\"schema\" that is no text"},
        {with(R"(,"version":1)"), "has no \"id\""},
        {with(R"(,"version":1,"id":"7")"), "\"id\" that is no number"},
        {with(R"(,"version":1,"id":0)"), "\"id\" that is no number"},
        {with(R"(,"version":1,"id":1.0)"), "\"id\" that is no number"},
        {with(R"(,"version":1,"id":2147483648)"), "\"id\" that is no number"},
        {with(R"(,"version":1,"id":18446744073709551615)"), "\"id\" that is no number"},
        {with(R"(,"version":-1,"id":1)"), "\"version\" that is no number"},
        {with(R"(,"version":1,"id":1,"schemaType":"XML")"), "neither AVRO, PROTOBUF nor JSON"},
        {with(R"(,"version":1,"id":1,"guid":"1b4e28ba")"), "\"guid\" that is none"},
        {with(R"(,"version":1,"id":1,"subject":"b-value")"), "is of another subject"},
        {with(R"(,"version":1,"id":1,"references":{})"), "\"references\" that are no list"},
        {with(R"(,"version":1,"id":1,"references":[1])"), "a reference that is no object"},
        {with(R"(,"version":1,"id":1,"references":[{"name":"n","subject":"s"}])"),
         "reference that has no \"version\""},
        {with(R"(,"version":1,"id":1,"references":[{"name":"n","subject":"..","version":1}])"),
         "impossible \"subject\""}};
    for (const auto& [body, why] : all)
        EXPECT_THAT(
            why_not(latest, body), AllOf(HasSubstr(why), HasSubstr("\"a-value\""), Not(HasSubstr("secret")))
        );
    EXPECT_THAT(
        why_not(ask_version{"a-value", 2}, with(R"(,"version":1,"id":1)")), HasSubstr("is of another version")
    );
}

TEST(RegistryCodec, KeepsToItsLimits) {
    const reply_limits limits{.schema_bytes_max = 5, .references_max = 1};
    const auto reply = [](const std::string& schema, const std::string& references) {
        return R"({"id":1,"version":1,"schema":")" + schema + R"(","references":[)" + references + "]}";
    };
    const std::string one = R"({"name":"n","subject":"s","version":1})";
    EXPECT_TRUE(decode(latest, reply("12345", one), limits));
    EXPECT_THAT(why_not(latest, reply("123456", one), limits), HasSubstr("6 bytes, of at most 5"));
    EXPECT_THAT(
        why_not(latest, reply("12345", one + "," + one), limits), HasSubstr("2 references, of at most 1")
    );
}

TEST(RegistryCodec, RefusesABottomlessReply) {
    EXPECT_THAT(why_not(latest, std::string(1'000'000, '[')), HasSubstr("is no JSON object"));
}

TEST(RegistryCodec, ReadsWhatARegistrySaysOfARefusal) {
    EXPECT_EQ(
        read_refusal(R"({"error_code":40401,"message":"Subject 'a' not found."})"),
        (refusal{40401, "Subject 'a' not found."})
    );
    EXPECT_EQ(read_refusal(R"({"message":"a\nb\u0007c"})"), (refusal{std::nullopt, R"(a\nb\x07c)"}));
    EXPECT_EQ(read_refusal(R"({"error_code":"40401","message":7})"), refusal{});
    EXPECT_EQ(read_refusal("<html>"), refusal{});
    EXPECT_EQ(read_refusal(""), refusal{});
}

TEST(RegistryCodec, CutsLongWordsBetweenCharacters) {
    std::string words = "x";
    for (int i = 0; i < 2'000; ++i)
        words += "é";
    const auto said = read_refusal(R"({"message":")" + words + R"("})").message;
    EXPECT_EQ(said, words.substr(0, 999) + "…");
}

}  // namespace
}  // namespace millrace::registry
