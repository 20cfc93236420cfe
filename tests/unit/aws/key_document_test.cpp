#include "credentials/key_document.hpp"

#include "credentials/command_words.hpp"
#include "credentials/sts_reply.hpp"
#include "text/moment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const auto noon = read_moment("2026-11-30T12:00:00Z");

std::string why(std::string_view json, key_dialect dialect) {
    const auto read = read_keys(json, dialect, "the test");
    if (read) return "it was taken";
    EXPECT_EQ(read.error().retry, retry_advice::after_delay);
    EXPECT_THAT(read.error().detail, Not(HasSubstr("S3CR3T")));
    return read.error().detail;
}

TEST(KeyDocument, OfAProgramSaysItsVersionAndMayHaveNoEnd) {
    EXPECT_EQ(
        read_keys(R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"S"})", key_dialect::program, "it"),
        (aws_keys{"A", "S", "", std::nullopt})
    );
    EXPECT_EQ(
        read_keys(
            R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T",
                "Expiration":"2026-11-30T13:00:00+01:00"})",
            key_dialect::program,
            "it"
        ),
        (aws_keys{"A", "S", "T", noon})
    );
    for (const auto* version : {R"("Version":2,)", R"("Version":"1",)", ""}) {
        EXPECT_THAT(
            why(std::string("{") + version + R"("AccessKeyId":"A","SecretAccessKey":"S3CR3T"})",
                key_dialect::program),
            HasSubstr("\"Version\": 1")
        );
    }
}

TEST(KeyDocument, OfAnAgentHasATokenAndAnEnd) {
    EXPECT_EQ(
        read_keys(
            R"({"Code":"Success","AccessKeyId":"A","SecretAccessKey":"S","Token":"T",
                "Expiration":"2026-11-30T12:00:00Z"})",
            key_dialect::agent,
            "it"
        ),
        (aws_keys{"A", "S", "T", noon})
    );
    EXPECT_THAT(
        why(R"({"AccessKeyId":"A","SecretAccessKey":"S3CR3T","Token":"T"})", key_dialect::agent),
        HasSubstr("without an Expiration")
    );
    EXPECT_THAT(
        why(R"({"AccessKeyId":"A","SecretAccessKey":"S3CR3T","Token":"T","Expiration":"soon"})",
            key_dialect::agent),
        HasSubstr("no time")
    );
}

TEST(KeyDocument, AFailureIsToldByItsCodeAlone) {
    EXPECT_THAT(
        why(R"({"Code":"AssumeRoleUnauthorizedAccess","Message":"S3CR3T"})", key_dialect::agent),
        HasSubstr("AssumeRoleUnauthorizedAccess")
    );
    EXPECT_THAT(why(R"({"code":"S3CR3T+/="})", key_dialect::agent), HasSubstr("no word"));
}

TEST(KeyDocument, WhatIsNoneIsNotShown) {
    for (const auto* text : {"S3CR3T", "", "[]", "\"S3CR3T\"", R"({"AccessKeyId":"S3CR3T)"})
        EXPECT_THAT(why(text, key_dialect::agent), HasSubstr("no JSON object")) << text;
    EXPECT_THAT(
        why(R"({"AccessKeyId":"A","SecretAccessKey":5})", key_dialect::agent), HasSubstr("without usable")
    );
    EXPECT_THAT(
        why(R"({"AccessKeyId":"A","SecretAccessKey":"S3CR3T\nx"})", key_dialect::agent),
        HasSubstr("without usable")
    );
    EXPECT_THAT(
        why(std::string(key_document_bytes_max + 1, ' '), key_dialect::agent), HasSubstr("more than keys")
    );
}

const std::string sts_reply = R"(<?xml version="1.0" encoding="UTF-8"?>
<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleResult>
    <SourceIdentity/>
    <AssumedRoleUser><Arn>arn:x</Arn></AssumedRoleUser>
    <Credentials>
      <AccessKeyId>A</AccessKeyId><SecretAccessKey>S&amp;&#x2f;&#43;</SecretAccessKey>
      <SessionToken>
T==
      </SessionToken>
      <Expiration>2026-11-30T12:00:00Z</Expiration>
    </Credentials>
  </AssumeRoleResult>
  <ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>
</AssumeRoleResponse>)";

TEST(StsReply, HoldsKeysInItsCredentials) {
    EXPECT_EQ(read_sts_keys(sts_reply, "it"), (aws_keys{"A", "S&/+", "T==", noon}));
    EXPECT_EQ(read_sts_failure(sts_reply).code, "");
}

TEST(StsReply, AFailureHasACodeAndAMessage) {
    const auto said = read_sts_failure(
        "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User: a is not "
        "authorized to "
        "perform: sts:AssumeRole</Message></Error></ErrorResponse>"
    );
    EXPECT_EQ(said.code, "AccessDenied");
    EXPECT_EQ(said.message, "User: a is not authorized to perform: sts:AssumeRole");
}

TEST(StsReply, WhatIsNoneIsNotShown) {
    std::string deep;
    for (int i = 0; i < 40; ++i)
        deep += "<a>";
    for (const auto& text :
         {std::string("S3CR3T"),
          std::string("<html>S3CR3T"),
          std::string("<a><b>S3CR3T</a></b>"),
          deep,
          sts_reply.substr(0, sts_reply.size() - 3),
          std::string("<!DOCTYPE x [<!ENTITY y \"S3CR3T\">]><x>&y;</x>"),
          std::string("<Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S3CR3T</SecretAccessKey></"
                      "Credentials>"),
          std::string(sts_bytes_max + 1, ' ')}) {
        const auto read = read_sts_keys(text, "it");
        ASSERT_FALSE(read) << text;
        EXPECT_THAT(read.error().detail, AllOf(HasSubstr("it gave"), Not(HasSubstr("S3CR3T"))));
    }
}

TEST(CommandWords, AreSplitAsAShellDoesAndNothingIsExpanded) {
    EXPECT_THAT(command_words("  a   b\tc ").value(), ElementsAre("a", "b", "c"));
    EXPECT_THAT(command_words(R"(a 'b c' "d e" f\ g)").value(), ElementsAre("a", "b c", "d e", "f g"));
    EXPECT_THAT(command_words(R"(a '' "" x'y'"z")").value(), ElementsAre("a", "", "", "xyz"));
    EXPECT_THAT(command_words(R"(a '\n$x' "\"\\\$\n")").value(), ElementsAre("a", R"(\n$x)", R"("\$\n)"));
    EXPECT_THAT(
        command_words("a $HOME `x` $(y) *.z ; rm -rf | > & ~").value(),
        ElementsAre("a", "$HOME", "`x`", "$(y)", "*.z", ";", "rm", "-rf", "|", ">", "&", "~")
    );
}

TEST(CommandWords, RefusesWhatIsOpenOrEmptyWithoutShowingIt) {
    using namespace std::string_view_literals;
    for (const auto line : {"a 'S3CR3T"sv, "a \"S3CR3T"sv, "a S3CR3T\\"sv, ""sv, "  "sv, "''"sv, "a\0b"sv}) {
        const auto words = command_words(line);
        ASSERT_FALSE(words) << line;
        EXPECT_THAT(words.error().detail, Not(HasSubstr("S3CR3T")));
    }
}

}  // namespace
}  // namespace millrace::aws
