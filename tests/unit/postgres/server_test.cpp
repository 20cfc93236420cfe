#include "server.hpp"

#include <gmock/gmock.h>

namespace millrace::postgres {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Pointee;

TEST(PostgresServer, KeepsWhatLibpqKnowsAndTakesOutWhatIsOurs) {
    const auto found = parse_server(
        "postgresql://app:secret@a:5433,b:5434/"
        "shop?table=Sales.%22Out%20Box%22&sslmode=verify-full&schema=lease&"
        "target_session_attrs=read-write"
    );
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_THAT(found->find("host"), Pointee(std::string("a,b")));
    EXPECT_THAT(found->find("port"), Pointee(std::string("5433,5434")));
    EXPECT_THAT(found->find("password"), Pointee(std::string("secret")));
    EXPECT_THAT(found->find("sslmode"), Pointee(std::string("verify-full")));
    EXPECT_THAT(found->find("target_session_attrs"), Pointee(std::string("read-write")));
    EXPECT_EQ(found->table, (table_name{"sales", "Out Box"}));
    EXPECT_EQ(found->schema, "lease");
    EXPECT_EQ(found->name, "postgresql://app@a:5433,b:5434/shop");
}

TEST(PostgresServer, HasDefaultsOnlyWhereTheUserGaveNone) {
    const auto plain = parse_server("postgresql://h/d");
    EXPECT_THAT(plain->find("connect_timeout"), Pointee(std::string("3")));
    EXPECT_THAT(plain->find("tcp_user_timeout"), Pointee(std::string("10000")));
    EXPECT_THAT(plain->find("keepalives_idle"), Pointee(std::string("5")));
    EXPECT_THAT(plain->find("fallback_application_name"), Pointee(std::string("millrace")));
    const auto own =
        parse_server("postgresql://h/d?connect_timeout=7&application_name=x&client_encoding=LATIN1");
    EXPECT_THAT(own->find("connect_timeout"), Pointee(std::string("7")));
    EXPECT_THAT(own->find("application_name"), Pointee(std::string("x")));
    EXPECT_THAT(own->find("client_encoding"), Pointee(std::string("UTF8")));
}

TEST(PostgresServer, NamesEachKindOfAddressWithoutItsPassword) {
    const auto name = [](const char* given) { return parse_server(given).value().name; };
    EXPECT_EQ(name("postgres://u:p@h"), "postgresql://u@h");
    EXPECT_EQ(name("postgresql:///d?host=/run/pg&password=p"), "postgresql:///d?host=/run/pg");
    EXPECT_EQ(name("postgresql://[::1]:5432/d"), "postgresql://[::1]:5432/d");
    EXPECT_EQ(name("postgresql://a,b/d?port=1"), "postgresql://a:1,b:1/d");
    EXPECT_EQ(name("host=h user=u password='p w' dbname=d"), "postgresql://u@h/d");
    EXPECT_EQ(name("postgresql:///?service=shop&password=p"), "postgresql:///?service=shop");
}

TEST(PostgresServer, LeavesAQuestionMarkInAPasswordAlone) {
    const auto found = parse_server("postgresql://u:a?table=b@h/d?table=c");
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_THAT(found->find("password"), Pointee(std::string("a?table=b")));
    EXPECT_EQ(found->table, (table_name{"", "c"}));
}

TEST(PostgresServer, NeverShowsAPasswordInARefusal) {
    for (const auto* given :
         {"postgresql://u:hush%zz@h/d",
          "postgresql://u:hush@h]/d?x",
          "postgresql://u@h/d?password=hush&sslmode",
          "postgresql://u:hush@[h/d",
          "user=u password=my hush",
          "user=u password='hush",
          "postgresql://u:hush%00@h/d"}) {
        const auto refused = parse_server(given);
        ASSERT_FALSE(refused) << given;
        EXPECT_EQ(refused.error().code, errc::invalid_argument);
        EXPECT_THAT(refused.error().detail, Not(HasSubstr("hush"))) << given;
    }
}

TEST(PostgresServer, NamesAnUnknownKeywordAndABadTable) {
    EXPECT_THAT(parse_server("postgresql://h/d?sslmod=x").error().detail, HasSubstr("sslmod"));
    EXPECT_THAT(
        parse_server("postgresql://h/d?table=a.b.c").error().detail, HasSubstr("more than two parts")
    );
    EXPECT_THAT(parse_server("postgresql://h/d?table=").error().detail, HasSubstr("table"));
    EXPECT_FALSE(parse_server("postgresql://h/d?schema=a.b"));
    EXPECT_FALSE(parse_server("postgresql://h/d?table=%4"));
}

}  // namespace
}  // namespace millrace::postgres
