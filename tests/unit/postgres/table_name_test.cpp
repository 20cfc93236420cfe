#include "table_name.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace::postgres {
namespace {

TEST(PostgresTableName, ReadsNamesAsSqlDoes) {
    EXPECT_EQ(parse_table_name("outbox"), (table_name{"", "outbox"}));
    EXPECT_EQ(parse_table_name("App.OutBox"), (table_name{"app", "outbox"}));
    EXPECT_EQ(parse_table_name("\"My App\".\"a.b\""), (table_name{"My App", "a.b"}));
    EXPECT_EQ(parse_table_name("\"say \"\"hi\"\"\""), (table_name{"", "say \"hi\""}));
    EXPECT_EQ(parse_table_name("\xc3\x9c.t"), (table_name{"\xc3\x9c", "t"}));
}

TEST(PostgresTableName, RefusesWhatIsNoName) {
    const auto too_long = std::string(64, 'a');
    for (const std::string_view given :
         {"", ".", "a.", ".a", "a.b.c", "\"a", "\"\"", "a\"b\"", "\"a\"b", "\"a\".\"b", too_long.c_str()}) {
        const auto refused = parse_table_name(given);
        ASSERT_FALSE(refused) << given;
        EXPECT_EQ(refused.error().code, errc::invalid_argument);
    }
    EXPECT_FALSE(parse_table_name(std::string_view("a\0b", 3)));
}

TEST(PostgresTableName, QuotesSoThatNothingEscapes) {
    EXPECT_EQ(quote_identifier("a\"b"), "\"a\"\"b\"");
    EXPECT_EQ(quote_literal("it's"), "'it''s'");
    EXPECT_EQ(quote_literal("a\\'b"), "E'a\\\\''b'");
    EXPECT_EQ((table_name{"s", "t"}).quoted(), "\"s\".\"t\"");
    EXPECT_EQ((table_name{"", "t"}).quoted(), "\"t\"");
    EXPECT_EQ((table_name{"s", "t"}).shown(), "s.t");
}

RC_GTEST_PROP(
    PostgresTableName, ReadsBackWhatItQuotes, (const std::string& schema, const std::string& table)
) {
    const auto usable = [](const std::string& part) {
        return !part.empty() && part.size() < 64 && part.find('\0') == std::string::npos;
    };
    RC_PRE(usable(schema) && usable(table));
    const table_name name{schema, table};
    RC_ASSERT(parse_table_name(name.quoted()) == name);
}

}  // namespace
}  // namespace millrace::postgres
