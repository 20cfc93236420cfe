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

TEST(Url, ASchemeOfAnotherBuildSaysSo) {
    EXPECT_TRUE(contains(refusal("kafka://broker/", url_role::sink), "another build"));
    EXPECT_TRUE(contains(refusal("dynamodb:table", url_role::state), "sqlite:PATH"));
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
