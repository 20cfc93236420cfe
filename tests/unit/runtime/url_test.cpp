#include <millrace/url.hpp>

#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string refusal(std::string_view given, url_role role) {
    const auto parsed = parse_url(given, role);
    if (parsed) return "accepted";
    EXPECT_EQ(parsed.error().code, errc::invalid_argument);
    return parsed.error().detail;
}

bool contains(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

// Left out: nothing but the scheme is looked at.
bool built_with_postgres() {
    return !contains(refusal("postgresql:", url_role::outbox), "left out");
}
bool built_with_kafka() {
    return !contains(refusal("kafka:", url_role::sink), "left out");
}
bool built_with_aws() {
    return !contains(refusal("dynamodb:", url_role::state), "left out");
}

TEST(Url, ReadsEachFormForItsRole) {
    EXPECT_EQ(
        parse_url("sqlite:a b.db", url_role::outbox),
        (url{url_role::outbox, "sqlite:a b.db", "sqlite", "a b.db", ""})
    );
    EXPECT_EQ(parse_url("sqlite:/x/s.db", url_role::state)->path, "/x/s.db");
    EXPECT_EQ(parse_url("local:streams.db", url_role::sink)->path, "streams.db");
    EXPECT_EQ(
        parse_url("local:/x/streams.db/orders", url_role::stream),
        (url{url_role::stream, "local:/x/streams.db/orders", "local", "/x/streams.db", "orders"})
    );
    EXPECT_EQ(parse_url("memory:", url_role::state)->path, "");
    EXPECT_EQ(parse_url("local:s.db/dead", url_role::dead_letters)->stream, "dead");
}

TEST(Url, AnUnknownSchemeSaysWhichExistAndTheNearest) {
    const auto text = refusal("sqlight:x.db", url_role::state);
    EXPECT_TRUE(contains(text, "\"sqlight:x.db\"")) << text;
    EXPECT_TRUE(contains(text, "sqlite:PATH or memory:")) << text;
    EXPECT_FALSE(contains(text, "did you mean")) << text;
    EXPECT_TRUE(contains(refusal("sqlit:x.db", url_role::state), "did you mean \"sqlite\"?"));
}

TEST(Url, ASchemeThatWasLeftOutOfTheBuildSaysSo) {
    if (!built_with_postgres()) {
        EXPECT_TRUE(contains(refusal("postgresql://h/d", url_role::outbox), "MILLRACE_WITH_POSTGRES"));
    }
    if (!built_with_kafka()) {
        EXPECT_TRUE(contains(refusal("kafka://h:9092", url_role::sink), "MILLRACE_WITH_KAFKA"));
    }
    if (!built_with_aws()) {
        EXPECT_TRUE(contains(refusal("dynamodb://r/leases", url_role::state), "MILLRACE_WITH_AWS"));
    }
}

TEST(Url, ADynamodbAddressIsOneOfAState) {
    if (!built_with_aws()) GTEST_SKIP() << "built without AWS";
    const auto* const given = "dynamodb://eu-west-1/leases?endpoint=http://127.0.0.1:8000/?x=1&y=2";
    const auto state = parse_url(given, url_role::state);
    ASSERT_TRUE(state) << state.error().detail;
    EXPECT_EQ(state->scheme, "dynamodb");
    EXPECT_EQ(state->path, given);
    EXPECT_EQ(state->given, given);
    for (const auto* bad :
         {"dynamodb:table",
          "dynamodb://eu-west-1",
          "dynamodb://eu-west-1/ab",
          "dynamodb://eu-west-1/a/b",
          "dynamodb://EU/leases",
          "dynamodb:///leases",
          "dynamodb://eu-west-1/leases?region=x",
          "dynamodb://eu-west-1/leases?endpoint=ftp://h"}) {
        EXPECT_TRUE(contains(refusal(bad, url_role::state), "dynamodb://REGION/TABLE[?endpoint=URL]")) << bad;
    }
    EXPECT_TRUE(contains(refusal(given, url_role::sink), "of no use here"));
    const auto secret = refusal("dynamodb://eu-west-1/leases?endpoint=http://u:topsecret@h", url_role::state);
    EXPECT_FALSE(contains(secret, "topsecret")) << secret;
}

TEST(Url, APostgresAddressIsOneOfAnOutboxAStateOrDeadLetters) {
    if (!built_with_postgres()) GTEST_SKIP() << "built without PostgreSQL";
    const auto outbox = parse_url("postgres://u:secret@h:5433/shop?table=app.outbox", url_role::outbox);
    ASSERT_TRUE(outbox) << outbox.error().detail;
    EXPECT_EQ(outbox->scheme, "postgresql");
    EXPECT_EQ(outbox->given, "postgres://u:***@h:5433/shop?table=app.outbox");
    EXPECT_EQ(outbox->path, "postgres://u:secret@h:5433/shop?table=app.outbox");
    EXPECT_TRUE(parse_url("postgresql://h/shop?schema=millrace", url_role::state));
    EXPECT_TRUE(parse_url("postgresql:///shop?host=/run/postgresql", url_role::dead_letters));
    EXPECT_TRUE(contains(refusal("postgresql://h/shop?schema=s", url_role::outbox), "schema"));
    EXPECT_TRUE(contains(refusal("postgresql://h/shop?table=t", url_role::state), "table"));
    EXPECT_TRUE(contains(refusal("postgresql://h/shop", url_role::sink), "of no use here"));
}

TEST(Url, AFaultOfAPostgresAddressIsNamedWithoutThePassword) {
    if (!built_with_postgres()) GTEST_SKIP() << "built without PostgreSQL";
    for (const auto* const wrong :
         {"postgresql://u:secret@h/shop?sslmod=require",
          "postgresql://u:secret@h/shop?table=a.b.c",
          "postgresql://u:secret@[::1/shop",
          "postgresql://u:secret%zz@h/shop",
          "postgresql://u:top@secret@127.0.0.1:1/shop",
          "postgresql://u:top@secret:x@h/shop",
          "postgresql:u:secret@h/shop"}) {
        const auto why = refusal(wrong, url_role::outbox);
        EXPECT_FALSE(contains(why, "accepted")) << wrong;
        EXPECT_FALSE(contains(why, "secret")) << why;
    }
    EXPECT_TRUE(contains(refusal("postgresql://h/shop?sslmod=x", url_role::outbox), "sslmod"));
}

TEST(Url, AKafkaAddressIsOneOfASinkOrOfATopicForDeadLetters) {
    if (!built_with_kafka()) GTEST_SKIP() << "built without Kafka";
    const auto sink = parse_url("kafka://b1:9092,b2:9092?sasl.password=secret", url_role::sink);
    ASSERT_TRUE(sink) << sink.error().detail;
    EXPECT_EQ(sink->given, "kafka://b1:9092,b2:9092?sasl.password=***");
    EXPECT_EQ(sink->path, "kafka://b1:9092,b2:9092?sasl.password=secret");
    const auto letters = parse_url("kafka://b:9092/dead?client.id=x", url_role::dead_letters);
    ASSERT_TRUE(letters) << letters.error().detail;
    EXPECT_EQ(letters->path, "kafka://b:9092?client.id=x");
    EXPECT_EQ(letters->stream, "dead");
    EXPECT_TRUE(contains(refusal("kafka://b:9092", url_role::dead_letters), "names no topic"));
    EXPECT_TRUE(contains(refusal("kafka://b:9092", url_role::stream), "of no use here"));
}

TEST(Url, AFaultOfAKafkaAddressIsNamedWithoutTheSecret) {
    if (!built_with_kafka()) GTEST_SKIP() << "built without Kafka";
    for (const auto* const wrong :
         {"kafka://b:9092?sasl.pasword=secret",
          "kafka://user:secret@b:9092",
          "kafka://user:top@secret@b:9092",
          "kafka://user:secret?x@b:9092",
          "kafka://user:top?secret@b:9092",
          "kafka://b:9092?sasl.password=top&secret",
          "kafka://b:99999?sasl.password=secret",
          "kafka://b:9092?enable.idempotence=false&sasl.password=secret"}) {
        const auto parsed = parse_url(wrong, url_role::sink);
        ASSERT_FALSE(parsed) << wrong;
        EXPECT_FALSE(contains(parsed.error().detail, "secret")) << parsed.error().detail;
    }
}

TEST(Url, ASchemeOfAnotherRoleIsRefusedWithTheRightOnes) {
    EXPECT_TRUE(contains(refusal("sqlite:x.db", url_role::stream), "expected local:PATH/STREAM"));
    EXPECT_TRUE(contains(refusal("memory:", url_role::outbox), "of no use here"));
}

TEST(Url, AnAddressWithoutItsPartsNamesThePart) {
    EXPECT_TRUE(contains(refusal("", url_role::outbox), "is empty"));
    EXPECT_TRUE(contains(refusal("orders.db", url_role::outbox), "no scheme"));
    EXPECT_TRUE(contains(refusal("sqlite:", url_role::outbox), "names no file"));
    EXPECT_TRUE(contains(refusal("local:dir/", url_role::sink), "directory"));
    EXPECT_TRUE(contains(refusal("local:orders", url_role::stream), "names no stream"));
}

TEST(Url, WhatSqliteWouldNotTakeForAFileIsRefused) {
    for (const auto role : {url_role::outbox, url_role::state, url_role::dead_letters}) {
        EXPECT_TRUE(contains(refusal("sqlite::memory:", role), "a database in memory, which would be lost"));
        EXPECT_TRUE(contains(refusal("sqlite:file:x.db?mode=memory", role), "has a URI in place of a path"));
    }
    EXPECT_TRUE(contains(refusal("local::memory:", url_role::sink), "in memory"));
    EXPECT_TRUE(contains(refusal("local::memory:/orders", url_role::stream), "in memory"));
    EXPECT_TRUE(contains(refusal("local:file:s.db/orders", url_role::stream), "URI"));
    EXPECT_EQ(parse_url("sqlite:./file:x.db", url_role::state)->path, "./file:x.db");
    EXPECT_EQ(parse_url("sqlite::x.db", url_role::state)->path, ":x.db");
}

}  // namespace
}  // namespace millrace
