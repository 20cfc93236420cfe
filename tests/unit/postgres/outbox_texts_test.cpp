#include "header_arrays.hpp"
#include "outbox_insert.hpp"
#include "outbox_sql.hpp"
#include "postgres_outbox_schema.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::postgres {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

using elements = std::vector<std::optional<std::string_view>>;
using headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

std::string array(type_id element, const elements& values) {
    std::string made;
    append_array(made, element, values);
    return made;
}

struct reading {
    std::string fault;
    headers found;
};

reading read(const std::optional<std::string>& names, const std::optional<std::string>& values) {
    reading done;
    done.fault =
        each_header(names, values, [&](std::string_view name, std::optional<std::string_view> value) {
            done.found.emplace_back(
                std::string(name), value ? std::optional<std::string>(std::string(*value)) : std::nullopt
            );
        });
    return done;
}

TEST(OutboxHeaders, PairNamesWithValuesOfAnyBytes) {
    const auto made = read(
        array(type_id::text, {"a", "", "b"}),
        array(type_id::bytea, {std::string_view("\0\xff", 2), std::nullopt, ""})
    );
    EXPECT_THAT(made.fault, IsEmpty());
    EXPECT_THAT(
        made.found, ElementsAre(Pair("a", std::string("\0\xff", 2)), Pair("", std::nullopt), Pair("b", ""))
    );
}

TEST(OutboxHeaders, AnAbsentArrayIsAnEmptyOne) {
    EXPECT_THAT(read(std::nullopt, std::nullopt).fault, IsEmpty());
    EXPECT_THAT(read(array(type_id::text, {}), std::nullopt).fault, IsEmpty());
    EXPECT_THAT(read(std::nullopt, array(type_id::bytea, {"v"})).fault, Not(IsEmpty()));
}

TEST(OutboxHeaders, SayWhyTheyAreNone) {
    EXPECT_THAT(
        read(array(type_id::text, {"a", "b"}), array(type_id::text, {"v"})).fault,
        HasSubstr("as many header values")
    );
    EXPECT_THAT(
        read(array(type_id::text, {std::nullopt}), array(type_id::text, {"v"})).fault,
        HasSubstr("has no name")
    );
    const std::string two_dimensions("\0\0\0\2\0\0\0\0\0\0\0\x19", 12);
    EXPECT_THAT(read(two_dimensions, array(type_id::text, {})).fault, HasSubstr("one dimension"));
    auto broken_off = array(type_id::text, {"name"});
    broken_off.pop_back();
    EXPECT_THAT(read(broken_off, array(type_id::text, {"v"})).fault, HasSubstr("decoded"));
}

TEST(OutboxTexts, QuoteWhateverATableIsCalled) {
    const table_name odd{"sch\"ema", "out'box"};
    const auto script = outbox_script(odd, "wri\"ter", "relay");
    EXPECT_THAT(script, HasSubstr("CREATE TABLE IF NOT EXISTS \"sch\"\"ema\".\"out'box\" ("));
    EXPECT_THAT(script, HasSubstr("'\"sch\"\"ema\".\"out''box\"'::regclass"));
    EXPECT_THAT(script, HasSubstr("TO \"wri\"\"ter\""));
    EXPECT_THAT(script, HasSubstr("\"out'box_put\""));

    outbox_layout layout;
    layout.table = odd;
    layout.topic = layout.key = layout.value = {quote_identifier("to\"pic"), 25, "text"};
    const outbox_sql sql(layout);
    for (const auto& statement :
         {sql.ahead_small, sql.ahead_exact, sql.gaps, sql.status, sql.remove_ids, sql.bury, sql.look})
        EXPECT_THAT(statement, HasSubstr("\"sch\"\"ema\".\"out'"));
    EXPECT_THAT(sql.ahead_small, HasSubstr("o.\"to\"\"pic\""));
}

TEST(OutboxTexts, TheScriptGivesNobodyMoreThanNeeded) {
    const auto script = outbox_script({"", "outbox"}, "writer", "relay");
    EXPECT_THAT(script, HasSubstr("GRANT INSERT ON \"public\".\"outbox\" TO \"writer\""));
    EXPECT_THAT(script, HasSubstr("REVOKE EXECUTE ON FUNCTION"));
    EXPECT_THAT(script, Not(HasSubstr("DELETE ON \"public\".\"outbox\" TO \"writer\"")));
    EXPECT_THAT(script, Not(HasSubstr("UPDATE ON \"public\".\"outbox\"")));
}

TEST(OutboxTexts, TextOfNoEncodingIsReadAndWrittenAsBytes) {
    const outbox_column value{"v", 1043, "character varying(10)", false, true};
    EXPECT_EQ(value.read(), "convert_to(o.v::text, 'SQL_ASCII')");
    EXPECT_EQ(value.from_bytes("d.value"), "convert_from(d.value, 'SQL_ASCII')::character varying(10)");
    const outbox_column usual{"v", 25, "text"};
    EXPECT_EQ(usual.read(), "o.v");
    EXPECT_EQ(usual.as_bytes(), "convert_to(o.v::text, 'UTF8')");
}

TEST(OutboxTexts, TheTurnOfAKeyIsTakenBeforeTheIdIsDrawn) {
    outbox_layout layout;
    layout.table = {"s", "t"};
    layout.topic = {quote_identifier("topic"), 25, "text"};
    layout.key = layout.value = {quote_identifier("key"), 17, "bytea"};
    EXPECT_THAT(
        insert_event_sql(layout, true),
        testing::StartsWith("WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock(")
    );
    EXPECT_THAT(insert_event_sql(layout, false), Not(HasSubstr("lock")));
}

}  // namespace
}  // namespace millrace::postgres
