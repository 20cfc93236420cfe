#include "unit/runtime/refusal.hpp"

#include <tuple>

namespace millrace::test {
namespace {

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
    for (const auto& [given, role, option] :
         {std::tuple{"postgresql:", url_role::outbox, "MILLRACE_WITH_POSTGRES"},
          std::tuple{"kafka:", url_role::sink, "MILLRACE_WITH_KAFKA"},
          std::tuple{"dynamodb:", url_role::state, "MILLRACE_WITH_AWS"}}) {
        const auto text = refusal(given, role);
        EXPECT_NE(text, "accepted");
        EXPECT_EQ(contains(text, "left out"), contains(text, option)) << text;
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

TEST(Url, ControlCharactersAreShownAsEscapesAndStayInThePath) {
    EXPECT_TRUE(contains(refusal("sqlte:a\nb", url_role::state), "\"sqlte:a\\nb\""));
    EXPECT_TRUE(contains(refusal("local:s.db/or\nders", url_role::stream), "\"local:s.db/or\\nders\""));
    const auto stream = parse_url("local:a\nb/orders", url_role::stream);
    EXPECT_EQ(stream->given, "local:a\\nb/orders");
    EXPECT_EQ(stream->path, "a\nb");
}

}  // namespace
}  // namespace millrace::test
