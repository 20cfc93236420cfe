// The checkpoint in the handler's transaction, statement by statement, against a row as the group writes it.
#include "contract/loop_host.hpp"
#include "contract/postgres_fixture.hpp"
#include "postgres_lease_store.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"
#include "support/process.hpp"

#include <millrace/postgres_checkpoint.hpp>

#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <sys/socket.h>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using support::eventually;
using support::sql_connection;

constexpr auto lease = 5'000ms;

std::string through(const support::fault_proxy& proxy) {
    auto url = support::services().postgres;
    const auto port = std::to_string(support::port_of(url));
    return url.replace(url.rfind(port), port.size(), std::to_string(proxy.port()));
}

struct PostgresCheckpoint : testing::Test {
    PostgresCheckpoint() {
        row.shard = shard_id{"s"};
        row.owner = incarnation{"me"};
        row.epoch = epoch{3};
        row.version = version{1};
        row.checkpoint = checkpoint{{sequence_number{10}, 2}, wall_time{1'000ms}};
        EXPECT_TRUE(write(row, std::nullopt));
        // Without a key: an effect that happens twice is there twice.
        schema.admin.execute("CREATE TABLE " + effects + " (record bigint)");
    }

    static postgres::server at(const std::string& name) {
        auto where = shared_server();
        where.schema = name;
        return where;
    }
    result<void> write(shard_row what, std::optional<version> expected) {
        return home.await<void>([&](completion<void> done) { store.write(what, expected, std::move(done)); });
    }
    shard_row stored() {
        const auto found =
            home.await<std::optional<lease_row>>([&](auto done) { store.read(row.shard, std::move(done)); });
        EXPECT_TRUE(found && *found);
        return found && *found ? std::get<shard_row>(**found) : shard_row{};
    }
    /// Another worker takes the shard.
    shard_row take() {
        auto taken = stored();
        const auto expected = taken.version;
        taken.owner = incarnation{"you"};
        taken.epoch = epoch{taken.epoch.value() + 1};
        taken.version = version{expected.value() + 1};
        EXPECT_TRUE(write(taken, expected));
        return taken;
    }

    [[nodiscard]] postgres_checkpoint opened() const {
        auto made = postgres_checkpoint::open(
            {row.shard,
             row.epoch,
             row.checkpoint->position,
             row.owner,
             checkpoint_place{schema.name, "orders", "billing", lease}}
        );
        EXPECT_TRUE(made);
        return std::move(*made);
    }
    static record numbered(std::uint64_t n) {
        record one;
        one.position = {sequence_number{n}, 0};
        one.arrival = wall_time{milliseconds{n}};
        return one;
    }
    void affect(sql_connection& on, std::uint64_t n) const {
        on.execute("INSERT INTO " + effects + " VALUES (" + std::to_string(n) + ")");
    }
    /// All but the commit.
    void work(postgres_checkpoint& checkpoint, sql_connection& on, std::uint64_t n) {
        const auto begun = checkpoint.begin(on.handle(), how);
        ASSERT_TRUE(begun) << begun.error().detail;
        affect(on, n);
        const auto moved = checkpoint.advance(on.handle(), how, numbered(n));
        ASSERT_TRUE(moved) << moved.error().detail;
    }
    [[nodiscard]] std::string effects_of(std::uint64_t n) {
        return schema.admin.value(
            "SELECT count(*) FROM " + effects + " WHERE record = $1", {std::to_string(n)}
        );
    }
    bool waits_for_a_lock() {
        return eventually(10s, [&] {
            return schema.admin.number(
                       "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE "
                       "$1",
                       {"%" + schema.name + "%"}
                   ) > 0;
        });
    }

    postgres_schema schema{"once"};
    const std::string effects = schema.table("effects");
    loop_host home;
    postgres_lease_store store{home, {.where = at(schema.name), .group = {"orders", "billing"}}};
    shard_row row;
    bool owner{true};
    delivery how{epoch{3}, 1, {}, [this] { return owner; }, acknowledger(0, {})};
    sql_connection db{support::services().postgres};
};

TEST_F(PostgresCheckpoint, IsCommittedWithTheEffects) {
    auto checkpoint = opened();
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 11));
    EXPECT_EQ(effects_of(11), "0");
    EXPECT_EQ(stored().checkpoint, row.checkpoint);
    ASSERT_TRUE(checkpoint.commit(db.handle()));
    EXPECT_EQ(effects_of(11), "1");
    const auto now = stored();
    EXPECT_EQ(now.checkpoint, (millrace::checkpoint{{sequence_number{11}, 0}, wall_time{11ms}}));
    EXPECT_EQ(now.version, version{2});
    EXPECT_NE(now.write_id, row.write_id);
    EXPECT_EQ(now.owner, row.owner);
    EXPECT_EQ(now.epoch, row.epoch);
    EXPECT_TRUE(checkpoint.has(numbered(11)));
    EXPECT_FALSE(checkpoint.has(numbered(12)));
}

TEST_F(PostgresCheckpoint, ALongSequenceNumberAndASubSequenceAreKeptExactly) {
    auto checkpoint = opened();
    auto last = numbered(0);
    last.position = {sequence_number::parse(std::string(129, '9')).value(), 77};
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    ASSERT_TRUE(checkpoint.advance(db.handle(), how, last));
    ASSERT_TRUE(checkpoint.commit(db.handle()));
    EXPECT_EQ(stored().checkpoint->position, last.position);
    EXPECT_EQ(checkpoint.advance(db.handle(), how, numbered(12)).error().code, errc::invalid_argument);
}

TEST_F(PostgresCheckpoint, AShardThatNeverHadOneGetsItsFirst) {
    row.checkpoint.reset();
    row.version = version{2};
    ASSERT_TRUE(write(row, version{1}));
    auto made = postgres_checkpoint::open(
        {row.shard,
         row.epoch,
         std::nullopt,
         row.owner,
         checkpoint_place{schema.name, "orders", "billing", lease}}
    );
    ASSERT_TRUE(made);
    ASSERT_NO_FATAL_FAILURE(work(*made, db, 1));
    ASSERT_TRUE(made->commit(db.handle()));
    EXPECT_EQ(stored().checkpoint->position.sequence, sequence_number{1});
}

TEST_F(PostgresCheckpoint, TheLimitsHoldForItsTransactionsOnly) {
    auto checkpoint = opened();
    db.execute("SET synchronous_commit = off");
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    EXPECT_EQ(db.value("SHOW lock_timeout"), "1s");
    EXPECT_EQ(db.value("SHOW idle_in_transaction_session_timeout"), "1s");
    EXPECT_EQ(db.value("SHOW synchronous_commit"), "local");
    ASSERT_TRUE(checkpoint.advance(db.handle(), how, numbered(11)));
    ASSERT_TRUE(checkpoint.commit(db.handle()));
    EXPECT_EQ(db.value("SHOW lock_timeout"), "0");
    EXPECT_EQ(db.value("SHOW idle_in_transaction_session_timeout"), "0");
    EXPECT_EQ(db.value("SHOW synchronous_commit"), "off");
}

TEST_F(PostgresCheckpoint, AZombiesUpdateAfterATakeOverChangesNothing) {
    auto checkpoint = opened();
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    affect(db, 11);
    const auto taken = take();
    EXPECT_EQ(checkpoint.advance(db.handle(), how, numbered(11)).error().code, errc::not_owner);
    EXPECT_EQ(checkpoint.commit(db.handle()).error().code, errc::invalid_argument);
    EXPECT_EQ(effects_of(11), "0");
    EXPECT_EQ(stored().checkpoint, taken.checkpoint);
    EXPECT_EQ(stored().version, taken.version);
}

TEST_F(PostgresCheckpoint, APastDeadlineSendsNothing) {
    auto checkpoint = opened();
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    affect(db, 11);
    owner = false;
    EXPECT_EQ(checkpoint.advance(db.handle(), how, numbered(11)).error().code, errc::not_owner);
    EXPECT_EQ(PQtransactionStatus(db.handle()), PQTRANS_IDLE);
    EXPECT_EQ(checkpoint.begin(db.handle(), how).error().code, errc::not_owner);
    owner = true;
    how.epoch = epoch{4};  // a call under another grant
    EXPECT_EQ(checkpoint.begin(db.handle(), how).error().code, errc::not_owner);
    EXPECT_EQ(effects_of(11), "0");
}

// The write of a taker names the version that it read, and writes the whole row.
TEST_F(PostgresCheckpoint, MovesTheVersionSoThatATakersOlderReadCannotSetItBack) {
    auto taken = stored();
    const auto expected = taken.version;
    taken.owner = incarnation{"you"};
    taken.epoch = epoch{4};
    taken.version = version{expected.value() + 1};

    auto checkpoint = opened();
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 11));
    ASSERT_TRUE(checkpoint.commit(db.handle()));
    EXPECT_EQ(write(taken, expected).error().code, errc::conflict);
    EXPECT_EQ(stored().checkpoint->position.sequence, sequence_number{11});

    // What an UPDATE that leaves the version alone would bring: the effects stay, the checkpoint goes back.
    db.execute(
        "UPDATE " + schema.table("millrace_shard") + " SET version = " + std::to_string(expected.value())
    );
    EXPECT_TRUE(write(taken, expected));
    EXPECT_EQ(stored().checkpoint, row.checkpoint);
}

/// An effect and its checkpoint wait for their commit on a connection that can be cut.
struct CutCheckpoint : PostgresCheckpoint {
    void SetUp() override { work(checkpoint, cut, 11); }

    std::future<result<void>> commit_that_is_held() {
        proxy.hold();
        auto lost = std::async(std::launch::async, [this] { return checkpoint.commit(cut.handle()); });
        EXPECT_EQ(lost.wait_for(50ms), std::future_status::timeout);
        return lost;
    }

    support::fault_proxy proxy{support::port_of(support::services().postgres)};
    sql_connection cut{through(proxy)};
    postgres_checkpoint checkpoint = opened();
};

TEST_F(CutCheckpoint, ACommitWhoseReplyIsLostIsFoundDoneAndNotRepeated) {
    proxy.lose_reply("COMMIT");
    const auto lost = checkpoint.commit(cut.handle());
    ASSERT_FALSE(lost);
    EXPECT_TRUE(lost.error().in_doubt);
    EXPECT_TRUE(checkpoint.in_doubt());
    EXPECT_EQ(checkpoint.begin(db.handle(), how).error().code, errc::conflict)
        << "nothing before it is known";
    const auto known = checkpoint.committed(db.handle());
    ASSERT_TRUE(known) << known.error().detail;
    EXPECT_TRUE(*known);
    EXPECT_TRUE(checkpoint.has(numbered(11)));
    EXPECT_EQ(effects_of(11), "1");
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 12));
    ASSERT_TRUE(checkpoint.commit(db.handle()));
}

TEST_F(CutCheckpoint, ACommitThatNeverArrivedIsRepeated) {
    auto lost = commit_that_is_held();
    proxy.cut();
    const auto outcome = lost.get();
    ASSERT_FALSE(outcome);
    EXPECT_TRUE(outcome.error().in_doubt);
    const auto known = checkpoint.committed(db.handle());
    ASSERT_TRUE(known) << known.error().detail;
    EXPECT_FALSE(*known);
    EXPECT_EQ(effects_of(11), "0");
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 11));
    ASSERT_TRUE(checkpoint.commit(db.handle()));
    EXPECT_EQ(effects_of(11), "1");
}

// Read at once, the row would say no; and then the commit would land.
TEST_F(CutCheckpoint, ACommitThatIsStillUnderWayIsWaitedFor) {
    auto lost = commit_that_is_held();
    ::shutdown(PQsocket(cut.handle()), SHUT_RDWR);  // the client gives up; its COMMIT is still on the way
    EXPECT_TRUE(lost.get().error().in_doubt);
    auto known = std::async(std::launch::async, [&] { return checkpoint.committed(db.handle()); });
    EXPECT_TRUE(waits_for_a_lock());
    proxy.release();
    const auto found = known.get();
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_TRUE(*found);
    EXPECT_EQ(effects_of(11), "1");
}

TEST_F(CutCheckpoint, ACommitInDoubtOfAShardThatWasTakenIsNotRepeatedHere) {
    auto lost = commit_that_is_held();
    proxy.cut();
    EXPECT_TRUE(lost.get().error().in_doubt);
    take();
    EXPECT_EQ(checkpoint.committed(db.handle()).error().code, errc::not_owner);
    EXPECT_EQ(effects_of(11), "0");
}

TEST_F(PostgresCheckpoint, ARowThatStandsFurtherThanKnownIsReadAgain) {
    auto other = opened();
    ASSERT_NO_FATAL_FAILURE(work(other, db, 20));
    ASSERT_TRUE(other.commit(db.handle()));
    auto checkpoint = opened();
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    affect(db, 11);
    EXPECT_EQ(checkpoint.advance(db.handle(), how, numbered(11)).error().code, errc::conflict);
    EXPECT_EQ(effects_of(11), "0");
    const auto known = checkpoint.committed(db.handle());
    ASSERT_TRUE(known);
    EXPECT_TRUE(*known) << "records up to 20 have had their effects";
    EXPECT_TRUE(checkpoint.has(numbered(20)));
    EXPECT_FALSE(checkpoint.has(numbered(21)));
}

TEST_F(PostgresCheckpoint, ARowThatWentBackIsNeverTakenForTrue) {
    auto checkpoint = opened();
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 20));
    ASSERT_TRUE(checkpoint.commit(db.handle()));
    db.execute("UPDATE " + schema.table("millrace_shard") + " SET sequence = '15'");  // a restored copy
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    EXPECT_EQ(checkpoint.advance(db.handle(), how, numbered(21)).error().code, errc::conflict);
    EXPECT_EQ(checkpoint.committed(db.handle()).error().code, errc::conflict);
    EXPECT_EQ(checkpoint.begin(db.handle(), how).error().code, errc::conflict);
}

TEST_F(PostgresCheckpoint, AnOwnerThatStopsBeforeItsCommitHoldsTheRowForAFifthOfTheLease) {
    auto checkpoint = opened();
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 11));
    const auto begin = std::chrono::steady_clock::now();
    auto taken = row;  // the writes of a taker give up after a second
    taken.owner = incarnation{"you"};
    taken.epoch = epoch{4};
    taken.version = version{2};
    EXPECT_TRUE(eventually(10s, [&] { return write(taken, version{1}).has_value(); }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, lease / 5 + 2s);
    const auto late = checkpoint.commit(db.handle());
    ASSERT_FALSE(late);
    EXPECT_TRUE(late.error().in_doubt) << late.error().detail;
    sql_connection fresh(support::services().postgres);
    EXPECT_EQ(checkpoint.committed(fresh.handle()).error().code, errc::not_owner);
    EXPECT_EQ(effects_of(11), "0");
}

TEST_F(PostgresCheckpoint, AFailedEffectMovesNothing) {
    auto checkpoint = opened();
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    affect(db, 11);
    EXPECT_THROW(db.execute("INSERT INTO " + effects + " VALUES ('x')"), support::sql_error);
    const auto moved = checkpoint.advance(db.handle(), how, numbered(11));
    EXPECT_EQ(moved.error().code, errc::unavailable);
    EXPECT_NE(moved.error().detail.find("one of its statements had failed"), std::string::npos);
    EXPECT_EQ(PQtransactionStatus(db.handle()), PQTRANS_IDLE);
    EXPECT_EQ(effects_of(11), "0");

    // An error of the handler's own, and another transaction on the same connection.
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    affect(db, 11);
    checkpoint.roll_back(db.handle());
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    affect(db, 11);
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 11)) << "begin ends what was left open";
    ASSERT_TRUE(checkpoint.commit(db.handle()));
    EXPECT_EQ(effects_of(11), "1");
}

TEST_F(PostgresCheckpoint, ACommitThatTheServerRefusesIsNotInDoubt) {
    db.execute(
        "ALTER TABLE " + effects + " ADD CONSTRAINT one UNIQUE (record) DEFERRABLE INITIALLY DEFERRED"
    );
    auto checkpoint = opened();
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    affect(db, 11);
    affect(db, 11);
    ASSERT_TRUE(checkpoint.advance(db.handle(), how, numbered(11)));
    const auto refused = checkpoint.commit(db.handle());
    EXPECT_EQ(refused.error().code, errc::conflict);
    EXPECT_FALSE(checkpoint.in_doubt());
    EXPECT_EQ(stored().checkpoint, row.checkpoint);
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 11));
    EXPECT_TRUE(checkpoint.commit(db.handle()));
}

TEST_F(PostgresCheckpoint, NothingMovesOutsideATransactionOfItsOwn) {
    auto checkpoint = opened();
    EXPECT_EQ(checkpoint.advance(db.handle(), how, numbered(11)).error().code, errc::unavailable);
    EXPECT_EQ(checkpoint.commit(db.handle()).error().code, errc::invalid_argument);
    ASSERT_NO_FATAL_FAILURE(work(checkpoint, db, 11));
    PQreset(db.handle());  // the transaction is gone; COMMIT alone would be taken for a success
    EXPECT_EQ(checkpoint.commit(db.handle()).error().code, errc::unavailable);
    EXPECT_FALSE(checkpoint.in_doubt());
    EXPECT_EQ(stored().checkpoint, row.checkpoint);
    EXPECT_EQ(effects_of(11), "0");
}

TEST_F(PostgresCheckpoint, UnderRepeatableReadAMovedRowIsTriedAgain) {
    db.execute("SET default_transaction_isolation = 'repeatable read'");
    auto checkpoint = opened();
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    affect(db, 11);
    take();
    const auto moved = checkpoint.advance(db.handle(), how, numbered(11));
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().retry, retry_advice::now);
    EXPECT_EQ(effects_of(11), "0");
    ASSERT_TRUE(checkpoint.begin(db.handle(), how));
    EXPECT_EQ(checkpoint.advance(db.handle(), how, numbered(11)).error().code, errc::not_owner);
}

TEST_F(PostgresCheckpoint, WorksThroughAPoolerOfTransactions) {
    const support::private_pgbouncer pooler(
        support::port_of(support::services().postgres), {"default_pool_size=1"}
    );
    sql_connection pooled(pooler.url());
    sql_connection other(pooler.url());
    auto checkpoint = opened();
    for (std::uint64_t n = 11; n < 14; ++n) {
        ASSERT_NO_FATAL_FAILURE(work(checkpoint, pooled, n));
        ASSERT_TRUE(checkpoint.commit(pooled.handle()));
        EXPECT_EQ(other.value("SHOW lock_timeout"), "0");
    }
    EXPECT_EQ(stored().checkpoint->position.sequence, sequence_number{13});
}

TEST_F(PostgresCheckpoint, AGrantWhoseCheckpointsTheRuntimeWritesHasNone) {
    EXPECT_EQ(postgres_checkpoint::open({row.shard, row.epoch}).error().code, errc::invalid_argument);
}

}  // namespace
}  // namespace millrace::test
