#include "unit/runtime/refusal.hpp"

namespace millrace::test {
namespace {

TEST(Url, APostgresAddressIsOneOfAnOutboxAStateOrDeadLetters) {
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

}  // namespace
}  // namespace millrace::test
