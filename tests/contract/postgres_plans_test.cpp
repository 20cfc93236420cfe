// Plans that the server keeps for a connection: where, of what, and what happens when one is refused.

#include "connection.hpp"
#include "contract/postgres_fixture.hpp"
#include "plans.hpp"
#include "support/private_servers.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace millrace::postgres {
namespace {

using test::reading;

struct PostgresPlans : testing::Test {
    void SetUp() override {
        schema.admin.execute("CREATE TABLE " + t + " (id bigint PRIMARY KEY, v text)");
        schema.admin.execute("INSERT INTO " + t + " VALUES (1, 'one')");
    }

    static connection open(const server& where, const stop_signal& stop) {
        auto made = connection::open(where, stop);
        if (!made) throw std::runtime_error(made.error().detail);
        return std::move(*made);
    }
    static statement again(std::string sql, effect what = effect::reads) {
        return {std::move(sql), what, "test", planning::once};
    }
    statement find() const { return again("SELECT * FROM " + t + " WHERE id = $1").with(std::int64_t{1}); }

    /// How many plans the server keeps whose text is `like`.
    std::int64_t kept(const std::string& like) {
        const auto found =
            db.run(reading("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE $1").with(like));
        if (!found) throw std::runtime_error(found.error().detail);
        return found->integer(0, 0).value();
    }
    std::int64_t session() { return db.run(reading("SELECT pg_backend_pid()"))->integer(0, 0).value(); }

    test::postgres_schema schema{"plans"};
    std::string t = schema.table("t");
    stop_signal stop;
    connection db = open(test::shared_server(), stop);
};

TEST_F(PostgresPlans, AreKeptOfStatementsThatAskForItFromTheSecondRoundTripOn) {
    ASSERT_TRUE(db.run(find()));
    EXPECT_EQ(kept("SELECT * FROM%"), 0) << "not known yet whether a pooler stands between";
    for (int i = 0; i < 3; ++i) {
        const auto found = db.run(find());
        ASSERT_TRUE(found) << found.error().detail;
        EXPECT_EQ(found->text(0, 1), "one");
    }
    EXPECT_EQ(kept("SELECT * FROM%"), 1);
    ASSERT_TRUE(db.run(reading("SELECT 'not again'")));
    EXPECT_EQ(kept("SELECT 'not again'%"), 0);
}

TEST_F(PostgresPlans, AreMadeForAnyParameters) {
    for (int i = 0; i < 8; ++i)
        ASSERT_TRUE(db.run(find()));
    const auto plans =
        db.run(reading("SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE "
                       "'SELECT * FROM%'"));
    EXPECT_EQ(plans->integer(0, 0), 7);
    EXPECT_EQ(plans->integer(0, 1), 0);
}

TEST_F(PostgresPlans, AreNotKeptBehindAPooler) {
    support::private_pgbouncer pooler(
        support::port_of(support::services().postgres), {"default_pool_size=2"}
    );
    auto pooled = open(test::shared_server_at(pooler.port()), stop);
    for (int i = 0; i < 4; ++i) {
        const auto found = pooled.run(find());
        ASSERT_TRUE(found) << found.error().detail;
        const auto all = pooled.run(again("SELECT count(*) FROM pg_prepared_statements"));
        EXPECT_EQ(all->integer(0, 0), 0);
    }
}

TEST_F(PostgresPlans, ServeValuesOfEachType) {
    for (int i = 0; i < 3; ++i) {
        const auto none = db.run(again("SELECT $1::bigint IS NULL").with(std::nullopt));
        ASSERT_TRUE(none) << none.error().detail;
        EXPECT_EQ(none->boolean(0, 0), true);
        const auto some = db.run(again("SELECT $1::bigint IS NULL").with(std::int64_t{1}));
        ASSERT_TRUE(some) << some.error().detail;
        EXPECT_EQ(some->boolean(0, 0), false);
    }
    EXPECT_EQ(kept("SELECT $1::bigint IS NULL"), 2);
}

TEST_F(PostgresPlans, AreMadeAnewWhenTheTableHasChangedUnderThem) {
    ASSERT_TRUE(db.run(find()));
    ASSERT_TRUE(db.run(find()));
    const auto before = session();
    schema.admin.execute("ALTER TABLE " + t + " ALTER COLUMN v TYPE bytea USING 'two'::bytea");
    for (int i = 0; i < 3; ++i) {
        const auto found = db.run(find());
        ASSERT_TRUE(found) << found.error().detail;
        EXPECT_EQ(found->value(0, 1), "two");
    }
    EXPECT_EQ(session(), before) << "on the same connection";
    EXPECT_EQ(kept("SELECT * FROM%"), 1);
}

TEST_F(PostgresPlans, AreMadeAnewAlsoWithinATransactionThatWasBegun) {
    ASSERT_TRUE(db.run(find()));
    ASSERT_TRUE(db.run(find()));
    schema.admin.execute("ALTER TABLE " + t + " ADD COLUMN w bigint DEFAULT 5");
    const std::vector both{again("UPDATE " + t + " SET v = 'written' WHERE id = 1", effect::writes), find()};
    auto one = db.begin();
    const auto done = one.commit_with(both);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(done->back().integer(0, 2), 5);
    EXPECT_EQ(schema.admin.value("SELECT v FROM " + t), "written");

    auto long_one = db.begin();
    ASSERT_TRUE(db.run(reading("SELECT 1")));
    ASSERT_TRUE(db.run(find())) << "kept again by now";
    ASSERT_TRUE(long_one.commit());
    schema.admin.execute("ALTER TABLE " + t + " DROP COLUMN w");
    {
        auto lost = db.begin();
        ASSERT_TRUE(db.run(reading("SELECT 1")));
        const auto refused = db.run(find());
        ASSERT_FALSE(refused) << "what was done before in this transaction is lost";
        EXPECT_NE(refused.error().retry, retry_advice::never);
    }
    EXPECT_TRUE(db.run(find())) << "the next time it goes";
}

TEST_F(PostgresPlans, AreDoneWithoutWhenTheSessionForgetsThem) {
    ASSERT_TRUE(db.run(find()));
    ASSERT_TRUE(db.run(find()));
    ASSERT_TRUE(db.run(reading("DEALLOCATE ALL")));  // as a pooler that shows the server's process would
    for (int i = 0; i < 3; ++i) {
        const auto found = db.run(find());
        ASSERT_TRUE(found) << found.error().detail;
    }
    EXPECT_EQ(kept("%"), 0);
}

TEST_F(PostgresPlans, AreBoundedInNumber) {
    for (std::size_t i = 0; i < 2 * plans::plans_max; ++i) {
        const auto sql = fmt::format("SELECT {}::bigint", i);
        for (int twice = 0; twice < 2; ++twice) {
            const auto found = db.run(again(sql));
            ASSERT_TRUE(found) << found.error().detail;
            EXPECT_EQ(found->integer(0, 0), static_cast<std::int64_t>(i));
        }
        ASSERT_LE(kept("%"), static_cast<std::int64_t>(plans::plans_max + 4));
    }
}

TEST_F(PostgresPlans, ThatCannotBeMadeAreReportedAsTheStatementIs) {
    ASSERT_TRUE(db.run(find()));
    const auto refused = db.run(again("SELECT nothing_of_this_name"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(db.last_refusal(), "42703");
    ASSERT_TRUE(db.run(find()));
    schema.admin.execute("DROP TABLE " + t);
    EXPECT_EQ(db.run(find()).error().code, errc::not_found);
    SetUp();
    EXPECT_TRUE(db.run(find())) << "the same plan means the new table";
}

}  // namespace
}  // namespace millrace::postgres
