#include "lease_tables.hpp"

#include "sqlite_lease_store.hpp"
#include "support/temporary_folder.hpp"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::lease_tables {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

struct LeaseTables : testing::Test {
    sqlite::database open() {
        auto db = sqlite::database::open(
            path, {.mode = sqlite::open_mode::create, .busy_timeout = 0ms, .name = "sqlite:state.db"}
        );
        EXPECT_TRUE(db) << db.error().detail;
        return std::move(*db);
    }
    static shard_row shard(std::string name) {
        shard_row row;
        row.shard = shard_id{std::move(name)};
        row.version = version{1};
        row.checkpoint = checkpoint{{sequence_number{7}, 0}, wall_time{1ms}};
        return row;
    }

    const group_key g{"s", "g"};
    support::temporary_folder files;
    std::string path = files.file("state.db");
};

TEST_F(LeaseTables, AreMadeOnceAndKeptThereafter) {
    auto first = open();
    auto second = open();
    ASSERT_TRUE(ensure(first));
    ASSERT_TRUE(write(first, g, shard("a"), std::nullopt));
    ASSERT_TRUE(ensure(second));
    EXPECT_EQ(list_shards(second, g).value().size(), 1u);
}

TEST_F(LeaseTables, OfANewerProgramAreRefusedNamingBothVersions) {
    auto db = open();
    ASSERT_TRUE(ensure(db));
    ASSERT_TRUE(db.run("UPDATE millrace_meta SET value = 99 WHERE name = 'lease_schema'"));
    const auto refused = ensure(db);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::wrong_version);
    EXPECT_EQ(
        refused.error().detail,
        "the lease tables in sqlite:state.db have version 99, and this program knows versions up to 1; use "
        "the "
        "newer program, or another file"
    );
}

TEST_F(LeaseTables, KeepTheRowsOfEachGroupOfEachStreamApart) {
    auto db = open();
    ASSERT_TRUE(ensure(db));
    worker_row session;
    session.incarnation = incarnation{"i"};
    session.counter = version{1};
    group_row start;
    start.version = version{1};
    const std::vector<lease_row> rows{start, session, shard("a")};
    const std::vector<group_key> groups{
        {"a-b", "c"}, {"a", "b-c"}, {"", "c"}, {"c", ""}, {"A-b", "c"}, {"a-b", "C"}, {"a-b/c", "c"}};
    for (const auto& group : groups) {
        for (const auto& row : rows) {
            EXPECT_EQ(read(db, group, key_of(row)).value(), std::nullopt)
                << group.stream << " " << group.name;
            EXPECT_TRUE(write(db, group, row, std::nullopt)) << group.stream << " " << group.name;
        }
    }
    for (const auto& row : rows)
        ASSERT_TRUE(remove(db, groups[0], key_of(row), version{1}));
    EXPECT_TRUE(list_shards(db, groups[0]).value().empty());
    EXPECT_TRUE(list_workers(db, groups[0]).value().empty());
    for (std::size_t i = 1; i < groups.size(); ++i) {
        EXPECT_EQ(list_shards(db, groups[i]).value().size(), 1u);
        EXPECT_EQ(list_workers(db, groups[i]).value().size(), 1u);
        EXPECT_TRUE(read(db, groups[i], std::monostate{}).value());
    }
}

TEST_F(LeaseTables, CanBeReadByAPerson) {
    auto db = open();
    ASSERT_TRUE(ensure(db));
    auto row = shard("a");
    row.checkpoint->position.sequence =
        sequence_number::parse("49590338271490256608559692538361571095921575989136588898").value();
    row.parents = {shard_id{"p"}};
    ASSERT_TRUE(write(db, g, row, std::nullopt));
    auto seen = db.prepare("SELECT sequence, parents FROM millrace_shard");
    ASSERT_TRUE(seen->step().value());
    EXPECT_EQ(seen->text(0), "49590338271490256608559692538361571095921575989136588898");
    EXPECT_EQ(seen->text(1), "[\"p\"]");
}

TEST_F(LeaseTables, ReportACheckpointThatIsNoNumber) {
    auto db = open();
    ASSERT_TRUE(ensure(db));
    ASSERT_TRUE(write(db, g, shard("a"), std::nullopt));
    ASSERT_TRUE(db.run("UPDATE millrace_shard SET sequence = 'x'"));
    const auto found = read(db, g, shard_id{"a"});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, errc::corrupt);
    EXPECT_THAT(found.error().detail, HasSubstr("column sequence of shard \"a\""));
}

TEST_F(LeaseTables, NameTheColumnThatHoldsWhatMillraceNeverWrites) {
    auto db = open();
    ASSERT_TRUE(ensure(db));
    auto reached = shard("a");
    reached.checkpoint = checkpoint{{sequence_number{7}, 1}, wall_time{milliseconds{5}}};
    for (const auto& [column, value] : {
             std::pair{"epoch", "'x'"},
             std::pair{"epoch", "-1"},
             std::pair{"epoch", "1.5"},
             std::pair{"version", "-3"},
             std::pair{"owner", "x'00'"},
             std::pair{"arrival", "NULL"},
             std::pair{"sub_sequence", "NULL"},
             std::pair{"finished_at", "'soon'"},
         }) {
        ASSERT_TRUE(db.execute("DELETE FROM millrace_shard"));
        ASSERT_TRUE(write(db, g, reached, std::nullopt));
        ASSERT_EQ(std::get<shard_row>(**read(db, g, shard_id{"a"})), reached);
        ASSERT_TRUE(db.execute(fmt::format("UPDATE millrace_shard SET {} = {}", column, value).c_str()));
        const auto found = read(db, g, shard_id{"a"});
        ASSERT_FALSE(found) << column << " " << value;
        EXPECT_EQ(found.error().code, errc::corrupt);
        EXPECT_THAT(found.error().detail, HasSubstr("of shard \"a\" is not what Millrace writes"));
    }
    worker_row worker;
    worker.incarnation = incarnation{"i"};
    ASSERT_TRUE(write(db, g, worker, std::nullopt));
    ASSERT_TRUE(db.execute("UPDATE millrace_worker SET lease_ns = -1"));
    const auto listed = list_workers(db, g);
    ASSERT_TRUE(listed) << listed.error().detail;
    EXPECT_THAT(listed->front().unreadable, HasSubstr("column lease_ns of worker"));
    group_row group;
    ASSERT_TRUE(write(db, g, group, std::nullopt));
    ASSERT_TRUE(db.execute("UPDATE millrace_group SET epoch_floor = 'x'"));
    const auto found = read(db, g, std::monostate{});
    EXPECT_THAT(found.error().detail, HasSubstr("column epoch_floor of the group"));
    EXPECT_THAT(found.error().detail, testing::Not(HasSubstr("delete the row")))
        << "it holds the floor of the epochs";
}

TEST_F(LeaseTables, ReportParentsThatAreNoList) {
    auto db = open();
    ASSERT_TRUE(ensure(db));
    ASSERT_TRUE(write(db, g, shard("a"), std::nullopt));
    for (const auto* broken : {"", "{", "{}", "[1]"}) {
        ASSERT_TRUE(db.run("UPDATE millrace_shard SET parents = ?", broken));
        EXPECT_EQ(read(db, g, shard_id{"a"}).error().code, errc::corrupt) << broken;
    }
}

TEST_F(LeaseTables, AreUnavailableAndNeverInDoubtWhileAWriterHoldsTheFile) {
    auto db = open();
    ASSERT_TRUE(ensure(db));
    auto holder = open();
    const auto held = holder.begin(sqlite::transaction_kind::immediate);
    const auto refused = write(db, g, shard("a"), std::nullopt);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::unavailable);
    EXPECT_EQ(refused.error().retry, retry_advice::after_delay);
    EXPECT_FALSE(refused.error().in_doubt);
}

}  // namespace
}  // namespace millrace::lease_tables
