#include "sqlite_lease_store.hpp"

#include "contract/loop_host.hpp"
#include "database.hpp"
#include "support/temporary_folder.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <gmock/gmock.h>

namespace millrace {
namespace {

using testing::HasSubstr;

struct SqliteLeaseStore : testing::Test {
    std::unique_ptr<sqlite_lease_store> make() {
        return std::make_unique<sqlite_lease_store>(
            home, sqlite_lease_store_options{.path = path, .group = {"s", "g"}}
        );
    }
    result<void> write(lease_store& to, std::uint64_t v) {
        shard_row row;
        row.shard = shard_id{"a"};
        row.version = version{v};
        row.write_id = write_id{v};
        const auto expected = v == 1 ? std::nullopt : std::optional(version{v - 1});
        return home.await<void>([&](auto done) { to.write(row, expected, std::move(done)); });
    }
    void remove_files() {
        for (const auto* ending : {"", "-wal", "-shm"})
            std::filesystem::remove(path + ending);
    }

    support::temporary_folder files;
    std::string path = files.file("state.db");
    test::loop_host home;
};

TEST_F(SqliteLeaseStore, DoesNotMakeAFileAnewThatVanishedWhileItWasUsedButUsesThatOfAnother) {
    const auto store = make();
    ASSERT_TRUE(write(*store, 1));
    remove_files();
    for (int i = 0; i < 2; ++i) {
        const auto refused = write(*store, 1);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, errc::not_found);
        EXPECT_THAT(refused.error().detail, HasSubstr("to begin anew instead, stop all workers"));
        EXPECT_FALSE(std::filesystem::exists(path));
    }
    const auto other = make();
    EXPECT_TRUE(write(*other, 1));
    EXPECT_TRUE(write(*store, 2)) << "the file is there again";
}

TEST_F(SqliteLeaseStore, DoesNotMakeTablesInAFileThatTookThePlaceOfTheOneItUsed) {
    const auto store = make();
    ASSERT_TRUE(write(*store, 1));
    remove_files();
    ASSERT_TRUE(
        sqlite::database::open(path, {.mode = sqlite::open_mode::create})->execute("CREATE TABLE mine (a)")
    );
    const auto refused = write(*store, 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::not_found);
    EXPECT_THAT(refused.error().detail, HasSubstr("holds no leases any more"));
}

}  // namespace
}  // namespace millrace
