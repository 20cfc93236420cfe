#include "postgres_error.hpp"

#include <gmock/gmock.h>

namespace millrace::postgres {
namespace {

using testing::HasSubstr;
using testing::Not;

error of(std::string_view state, std::string_view message = "m") {
    return make_error(state, message, "postgresql://h/d", "read the outbox in");
}

TEST(PostgresError, SaysWhatWhereWhyAndWhatToDo) {
    EXPECT_EQ(
        of("42P01", "relation \"outbox\" does not exist").detail,
        "cannot read the outbox in postgresql://h/d: relation \"outbox\" does not exist (SQLSTATE 42P01); "
        "create the "
        "table, or check the name, the schema and the search_path"
    );
}

TEST(PostgresError, TellsWhatCanSucceedLaterFromWhatCannot) {
    const auto is = [](std::string_view state, errc code, retry_advice retry) {
        EXPECT_EQ(of(state).code, code) << state;
        EXPECT_EQ(of(state).retry, retry) << state;
        EXPECT_FALSE(of(state).in_doubt) << state;
    };
    is("42P01", errc::not_found, retry_advice::after_delay);
    is("3F000", errc::not_found, retry_advice::after_delay);
    is("3D000", errc::not_found, retry_advice::after_delay);
    is("42501", errc::permission_denied, retry_advice::after_delay);
    is("28P01", errc::permission_denied, retry_advice::after_delay);
    is("40001", errc::unavailable, retry_advice::now);
    is("40P01", errc::unavailable, retry_advice::now);
    is("55P03", errc::unavailable, retry_advice::after_delay);
    is("57014", errc::unavailable, retry_advice::after_delay);
    is("57P01", errc::unavailable, retry_advice::after_delay);
    is("57P03", errc::unavailable, retry_advice::after_delay);
    is("53100", errc::out_of_space, retry_advice::after_delay);
    is("53300", errc::unavailable, retry_advice::after_delay);
    is("08006", errc::unavailable, retry_advice::after_delay);
    is("23505", errc::conflict, retry_advice::never);
    is("22P02", errc::invalid_argument, retry_advice::never);
    is("XX001", errc::corrupt, retry_advice::after_delay);
    is("XX000", errc::internal, retry_advice::after_delay);
    is("", errc::internal, retry_advice::after_delay);
}

TEST(PostgresError, SaysThatAStandbyWaitsForPromotion) {
    EXPECT_EQ(of("25006").code, errc::unavailable);
    EXPECT_EQ(of("25006").retry, retry_advice::after_delay);
    EXPECT_THAT(of("25006").detail, HasSubstr("name the primary, or promote it"));
}

TEST(PostgresError, LeavesAnUnknownOutcomeInDoubt) {
    EXPECT_TRUE(of("40003").in_doubt);
}

TEST(PostgresError, NeverShowsAValueThatTheServerQuotes) {
    EXPECT_THAT(of("22P02", "invalid input syntax for type bigint: \"hush\"").detail, Not(HasSubstr("hush")));
    EXPECT_THAT(
        of("22021", "invalid byte sequence for encoding \"UTF8\": 0xff").detail, Not(HasSubstr("0xff"))
    );
}

TEST(PostgresError, CutsALongMessageBetweenCharacters) {
    const auto detail = of("XX000", std::string(299, 'a') + "\xc3\xa9 and more").detail;
    EXPECT_THAT(detail, HasSubstr(std::string(299, 'a') + " (SQLSTATE"));
    EXPECT_THAT(of("XX000", "one\ntwo").detail, Not(HasSubstr("two")));
}

TEST(PostgresError, ReadsTheReasonOutOfARefusedConnection) {
    const auto refused = connect_error(
        "connection to server at \"h\" (10.0.0.1), port 5432 failed: FATAL:  28P01: password authentication "
        "failed for "
        "user \"u\"\nLOCATION:  auth_failed, auth.c:326\n",
        "postgresql://u@h/d"
    );
    EXPECT_EQ(refused.code, errc::permission_denied);
    EXPECT_EQ(
        refused.detail,
        "cannot connect to postgresql://u@h/d: password authentication failed for user \"u\" (SQLSTATE "
        "28P01); check "
        "the user, the password and the server's pg_hba.conf"
    );
}

TEST(PostgresError, NamesTheLastOfSeveralHosts) {
    const auto refused = connect_error(
        "connection to server at \"a\", port 1 failed: FATAL:  57P03: the database system is starting up\n"
        "connection to server at \"b\", port 2 failed: Connection refused\n"
        "\tIs the server running on that host and accepting TCP/IP connections?\n",
        "postgresql://a,b/d"
    );
    EXPECT_EQ(refused.code, errc::unavailable);
    EXPECT_THAT(refused.detail, HasSubstr("starting up"));
    const auto unreachable = connect_error(
        "connection to server at \"b\", port 2 failed: Connection refused\n\tIs the server running on that "
        "host?\n",
        "x"
    );
    EXPECT_EQ(unreachable.code, errc::unavailable);
    EXPECT_EQ(unreachable.retry, retry_advice::after_delay);
    EXPECT_THAT(unreachable.detail, HasSubstr("port 2 failed: Connection refused;"));
    EXPECT_THAT(connect_error("", "x").detail, HasSubstr("cannot connect to x"));
}

}  // namespace
}  // namespace millrace::postgres
