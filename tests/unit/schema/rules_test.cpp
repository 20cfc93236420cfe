#include "rules/rules.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::schema {
namespace {

topic_rule rule(
    std::string topic, const std::function<void(coding_rule&)>& change = [](coding_rule&) {}
) {
    topic_rule made{.topic = std::move(topic), .value = {.mode = coding_mode::avro}, .key = {}};
    change(made.value);
    return made;
}

std::string fault_of(const std::function<void(coding_rule&)>& change) {
    const std::vector<topic_rule> rules{rule("orders", change)};
    const auto checked = check_rules(rules);
    if (checked) return "";
    EXPECT_EQ(checked.error().code, errc::invalid_config);
    return checked.error().detail;
}

TEST(SchemaRules, MatchAPatternAsAWhole) {
    EXPECT_TRUE(matches_pattern("orders", "orders"));
    EXPECT_FALSE(matches_pattern("orders", "orders-2"));
    EXPECT_FALSE(matches_pattern("orders", "order"));
    EXPECT_TRUE(matches_pattern("*", ""));
    EXPECT_TRUE(matches_pattern("shop.*.v?", "shop.orders.eu.v2"));
    EXPECT_FALSE(matches_pattern("shop.*.v?", "shop.orders.v"));
    EXPECT_TRUE(matches_pattern("*a*b*", "xxaxxabx"));
    EXPECT_FALSE(matches_pattern("*a*b", "xxaxxabx"));
    EXPECT_FALSE(matches_pattern("?", ""));
}

TEST(SchemaRules, MatchALongNameWithManyStarsAtOnce) {
    std::string pattern;
    for (int i = 0; i < 100; ++i)
        pattern += "*a";
    EXPECT_FALSE(matches_pattern(pattern + "b", std::string(249, 'a')));
}

TEST(SchemaRules, LetTheFirstMatchDecide) {
    const std::vector<topic_rule> rules{rule("orders"), rule("orders-*"), rule("*")};
    EXPECT_EQ(rule_for(rules, "orders"), &rules[0]);
    EXPECT_EQ(rule_for(rules, "orders-eu"), &rules[1]);
    EXPECT_EQ(rule_for(rules, "payments"), &rules[2]);
    EXPECT_EQ(rule_for(std::span(rules).first(2), "payments"), nullptr);
    EXPECT_TRUE(check_rules(rules));
}

TEST(SchemaRules, MakeTheSubjectByTheirStrategy) {
    coding_rule coding{.mode = coding_mode::avro};
    EXPECT_EQ(subject_of(coding, record_part::value, "orders"), "orders-value");
    EXPECT_EQ(subject_of(coding, record_part::key, "orders"), "orders-key");
    coding.subject = subject_strategy::record;
    coding.record_name = "com.acme.Order";
    EXPECT_EQ(subject_of(coding, record_part::value, "orders"), "com.acme.Order");
    coding.subject = subject_strategy::topic_and_record;
    EXPECT_EQ(subject_of(coding, record_part::key, "orders"), "orders-com.acme.Order");
    coding.record_name.clear();
    EXPECT_EQ(
        subject_of(coding, record_part::value, "orders", "com.acme.FromFile"), "orders-com.acme.FromFile"
    );
    EXPECT_FALSE(subject_of(coding, record_part::value, "orders"));
    coding.subject = subject_strategy::given;
    coding.given_subject = "the-orders";
    EXPECT_EQ(subject_of(coding, record_part::value, "orders"), "the-orders");
}

TEST(SchemaRules, ReadAVersionFromAHeader) {
    EXPECT_EQ(read_version("12"), 12);
    for (const auto* text : {"", "0", "-1", "1.0", " 1", "latest", "99999999999"}) {
        const auto read = read_version(text);
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(read.error().code, errc::refused_record);
    }
}

TEST(SchemaRules, AreRefusedWhereTheyContradictThemselves) {
    const auto begin = std::string("rule 1 of the schemas (topic \"orders\"), value: ");
    EXPECT_EQ(fault_of([](coding_rule&) {}), "");
    EXPECT_EQ(
        fault_of([](coding_rule& c) {
            c.mode = coding_mode::none;
            c.auto_register = true;
        }),
        begin + "it has settings, but its mode is none; set `mode: frame`, `avro` or `json`"
    );
    EXPECT_EQ(
        fault_of([](coding_rule& c) { c.subject = subject_strategy::given; }),
        begin + "it takes a given subject, but names none; set `subject_name`"
    );
    EXPECT_EQ(
        fault_of([](coding_rule& c) { c.given_subject = "x"; }),
        begin + "it names a subject, but does not take it; set `subject: given`"
    );
    EXPECT_EQ(
        fault_of([](coding_rule& c) { c.subject = subject_strategy::record; }),
        begin + "its subject is made of the record's name, which nothing gives; set `record` or `schema_file`"
    );
    EXPECT_THAT(fault_of([](coding_rule& c) { c.record_name = "R"; }), testing::HasSubstr("does not use"));
    EXPECT_THAT(
        fault_of([](coding_rule& c) {
            c.subject = subject_strategy::record;
            c.record_name = "a b";
        }),
        testing::HasSubstr("`record: a b` is no full name")
    );
    EXPECT_EQ(
        fault_of([](coding_rule& c) { c.version = version_choice::fixed; }),
        begin + "`version: 0` must be 1 or more"
    );
    EXPECT_THAT(
        fault_of([](coding_rule& c) { c.version = version_choice::header; }), testing::HasSubstr("no name")
    );
    EXPECT_THAT(fault_of([](coding_rule& c) { c.version_header = "h"; }), testing::HasSubstr("does not use"));
    EXPECT_THAT(fault_of([](coding_rule& c) { c.fixed_version = 2; }), testing::HasSubstr("does not use"));
    EXPECT_THAT(
        fault_of([](coding_rule& c) { c.auto_register = true; }), testing::HasSubstr("set `schema_file`")
    );
    EXPECT_THAT(
        fault_of([](coding_rule& c) {
            c.auto_register = true;
            c.schema_file = "order.avsc";
            c.version = version_choice::fixed;
            c.fixed_version = 1;
        }),
        testing::HasSubstr("`version: latest` only")
    );
    EXPECT_THAT(
        fault_of([](coding_rule& c) { c.schema_file = "order.avsc"; }),
        testing::HasSubstr("`schema_file` has no use")
    );
    EXPECT_THAT(
        fault_of([](coding_rule& c) {
            c.mode = coding_mode::json;
            c.unions = union_style::plain;
        }),
        testing::HasSubstr("of `mode: avro` only")
    );
    EXPECT_THAT(
        fault_of([](coding_rule& c) { c.format = schema_format::protobuf; }),
        testing::HasSubstr("of `mode: frame` only")
    );
    EXPECT_THAT(
        fault_of([](coding_rule& c) {
            c.mode = coding_mode::frame;
            c.message_index = {1};
        }),
        testing::HasSubstr("of `format: protobuf` only")
    );
    EXPECT_EQ(
        fault_of([](coding_rule& c) {
            c.mode = coding_mode::frame;
            c.format = schema_format::protobuf;
            c.message_index = {1};
        }),
        ""
    );
}

TEST(SchemaRules, NameTheKeyWhereItsRuleIsWrong) {
    auto wrong = rule("orders");
    wrong.key.auto_register = true;
    const std::vector<topic_rule> rules{wrong};
    const auto checked = check_rules(rules);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().detail, testing::HasSubstr("(topic \"orders\"), key: "));
}

TEST(SchemaRules, AreRefusedWhereAnEarlierOneHidesThem) {
    const std::vector<topic_rule> rules{rule("payments"), rule("orders*"), rule("orders-eu")};
    const auto checked = check_rules(rules);
    ASSERT_FALSE(checked);
    EXPECT_EQ(
        checked.error().detail,
        "rule 3 of the schemas (topic \"orders-eu\") never decides, because rule 2 (topic \"orders*\") "
        "matches first; "
        "put the more special rule first"
    );
    EXPECT_FALSE(check_rules(std::vector<topic_rule>{rule("*"), rule("a*")}));
    EXPECT_FALSE(check_rules(std::vector<topic_rule>{rule("")}));
}

}  // namespace
}  // namespace millrace::schema
