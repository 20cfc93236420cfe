#include "server.hpp"

#include <string>
#include <utility>
#include <vector>

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

TEST(PostgresServer, ForgottenSlashesAreSaidToBeForgotten) {
    for (const char* given : {"postgresql:relay@db/shop", "postgresql:/relay@db/shop", "postgres:db"}) {
        const auto found = parse_server(given);
        ASSERT_FALSE(found) << given;
        EXPECT_THAT(found.error().detail, HasSubstr("wrong: it does not begin with postgresql://; write"));
    }
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

TEST(PostgresServer, RefusesAnAtSignInAUserOrAPasswordThatIsNotEncoded) {
    for (const auto* given :
         {"postgresql://u:top@hush@127.0.0.1:1/shop",
          "postgresql://us@hush@h/d",
          "postgresql://u:12/hush@h/d",
          "postgresql://u:a?b@hush@h/d?sslmode=require",
          "postgres://u:hush@x@a:1,b:2/d"}) {
        const auto refused = parse_server(given);
        ASSERT_FALSE(refused) << given;
        EXPECT_EQ(refused.error().code, errc::invalid_argument);
        EXPECT_THAT(refused.error().detail, HasSubstr("%40")) << given;
        EXPECT_THAT(refused.error().detail, Not(HasSubstr("hush"))) << given;
    }
    const auto encoded = parse_server("postgresql://a%40b:top%40se%2Fcret@h/d?application_name=x@y");
    ASSERT_TRUE(encoded) << encoded.error().detail;
    EXPECT_THAT(encoded->find("password"), Pointee(std::string("top@se/cret")));
    EXPECT_THAT(encoded->find("user"), Pointee(std::string("a@b")));
    EXPECT_TRUE(parse_server("postgresql:///d?user=a@b&host=/run/pg"));
}

TEST(PostgresServer, RefusesValuesThatLibpqWouldRefuseAtEveryConnect) {
    const std::vector<std::pair<const char*, const char*>> wrong{
        {"postgresql://u:hush@h/d?sslmode=requir", "verify-full"},
        {"postgresql://u:hush@h/d?target_session_attrs=master", "read-write"},
        {"postgresql://u:hush@h/d?connect_timeout=3s", "connect_timeout"},
        {"postgresql://u:hush@h/d?keepalives_idle=x", "keepalives_idle"},
        {"postgresql://u:hush@h/d?tcp_user_timeout=1.5", "tcp_user_timeout"},
        {"postgresql://u:hush@h/d?channel_binding=yes", "channel_binding"},
        {"postgresql://u:hush@h/d?gssencmode=on", "gssencmode"},
        {"postgresql://u:hush@h/d?ssl_min_protocol_version=1.2", "TLSv1.2"},
        {"postgresql://u@127.0.0.1:hush/shop", "port"},
        {"postgresql://u@a:5432,b:70000/shop", "port"},
        {"host=h port=0", "port"}};
    for (const auto& [given, named] : wrong) {
        const auto refused = parse_server(given);
        ASSERT_FALSE(refused) << given;
        EXPECT_EQ(refused.error().code, errc::invalid_argument);
        EXPECT_THAT(refused.error().detail, testing::AllOf(HasSubstr(named), Not(HasSubstr("hush"))))
            << given;
    }
    for (const auto* given :
         {"postgresql://a:5432,b,c:1/d?sslmode=verify-ca&target_session_attrs=prefer-standby",
          "postgresql://h:/d?connect_timeout=0&keepalives=1&ssl_max_protocol_version=TLSv1.3",
          "postgresql://h/d?sslmode="}) {
        EXPECT_TRUE(parse_server(given)) << given;
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
