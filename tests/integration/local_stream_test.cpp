// The local stream under real threads and processes, and as source and sink together.

#include "contract/loop_host.hpp"
#include "database.hpp"
#include "local_admin.hpp"
#include "local_read.hpp"
#include "local_sink.hpp"
#include "local_source.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr int keys = 20;

/// Appends records, five in a transaction, until the file "stop" appears; the data of a record is its number
/// within the writer. Leaves how many were acknowledged in a file.
int write_records(const support::temporary_folder& directory, int writer) {
    auto admin = local_admin::open(directory.file("streams.db"), {.busy_timeout = 30s}).value();
    int count = 0;
    while (!std::filesystem::exists(directory.file("stop"))) {
        std::vector<event> events;
        for (int k = 0; k < 5; ++k, ++count) {
            events.push_back(
                {.topic = "orders",
                 .key = std::to_string(writer) + "/" + std::to_string(count % keys),
                 .value = std::to_string(count)}
            );
        }
        if (!admin.put("orders", events)) return 1;
    }
    std::ofstream(directory.file("count." + std::to_string(writer))) << count;
    return 0;
}

/// Reads all shards, parents first, and notes what it saw.
class stream_reader {
public:
    explicit stream_reader(const std::string& file)
        : db_(sqlite::database::open(file, {.busy_timeout = 20ms}).value()) {}

    /// One read of every shard that may be read now. Lists anew after the end of a shard only: a listing
    /// waits for writers, and they shall not wait for the reader.
    void turn() {
        if (shards_.empty() || ended_.size() != ended_when_listed_) {
            ended_when_listed_ = ended_.size();
            shards_ = local::list_stream(db_, "orders", system_wall_time)->shards;
        }
        for (const auto& shard : shards_) {
            if (ended_.contains(shard.shard)) continue;
            const auto over = [&](const auto& parent) { return ended_.contains(parent); };
            if (std::ranges::all_of(shard.parents, over)) read(shard.shard);
        }
    }

    std::map<std::string, int> last;  // by key
    std::set<shard_id> filled;        // shards that had records
    std::size_t records{0};
    std::size_t disorder{0};

private:
    void read(const shard_id& shard) {
        auto& cursor = cursors_[shard];
        if (cursor.value().empty())
            cursor = local::open_cursor(db_, "orders", shard, from::trim_horizon{}).value();
        const auto reply = local::read_records(db_, "orders", shard, cursor, {.records_max = 50}).value();
        for (const auto& r : reply.records->records()) {
            const int number = std::stoi(std::string(*r.data));
            const auto [known, fresh] = last.try_emplace(std::string(*r.key), number);
            // The numbers of one key are `keys` apart.
            if (fresh ? number >= keys : number != known->second + keys) ++disorder;
            known->second = number;
            ++records;
            filled.insert(shard);
        }
        if (reply.next) {
            cursor = *reply.next;
        } else {
            ended_.insert(shard);
        }
    }

    sqlite::database db_;
    std::vector<listed_shard> shards_;
    std::size_t ended_when_listed_{0};
    std::map<shard_id, read_cursor> cursors_;
    std::set<shard_id> ended_;
};

/// Splits a shard, or merges the first two.
void change_shards(local_admin& admin, std::size_t change) {
    const auto stream = admin.describe("orders").value();
    std::vector<local_shard_info> open;
    std::ranges::copy_if(stream.shards, std::back_inserter(open), [](const auto& s) { return !s.closed; });
    std::ranges::sort(open, {}, &local_shard_info::range);
    if (change % 2 == 1) {
        ASSERT_TRUE(admin.split("orders", open[change % open.size()].shard));
    } else {
        ASSERT_TRUE(admin.merge("orders", open[0].shard, open[1].shard));
    }
}

TEST(LocalStream, LosesNothingAndKeepsKeysInOrderWhileProcessesWriteAndShardsSplitAndMerge) {
    const support::temporary_folder directory;
    const auto file = directory.file("streams.db");
    // Closed again before the fork: a connection must not be carried into another process.
    ASSERT_TRUE(local_admin::open_or_create(file)->create_stream("orders", 2));

    std::array<pid_t, 2> writers{};
    for (std::size_t w = 0; w < writers.size(); ++w) {
        writers[w] = fork();
        ASSERT_GE(writers[w], 0);
        if (writers[w] == 0) _exit(write_records(directory, static_cast<int>(w)));
    }

    constexpr std::size_t changes = 8;
    auto admin = local_admin::open(file, {.busy_timeout = 30s}).value();
    stream_reader reader(file);
    const auto limit = std::chrono::steady_clock::now() + 60s;
    const auto in_time = [&] { return std::chrono::steady_clock::now() < limit; };
    for (std::size_t change = 1; change <= changes; ++change) {
        // Writers are at work: a shard that had no records before gets some.
        const auto filled = reader.filled.size();
        while (reader.filled.size() == filled && in_time())
            reader.turn();
        change_shards(admin, change);
    }
    std::ofstream(directory.file("stop")) << "now";
    std::size_t acknowledged = 0;
    for (std::size_t w = 0; w < writers.size(); ++w) {
        int status = 0;
        ASSERT_EQ(waitpid(writers[w], &status, 0), writers[w]);
        EXPECT_EQ(status, 0);
        std::size_t count = 0;
        std::ifstream(directory.file("count." + std::to_string(w))) >> count;
        acknowledged += count;
    }
    while (reader.records < acknowledged && in_time())
        reader.turn();
    reader.turn();
    EXPECT_EQ(reader.records, acknowledged);
    EXPECT_EQ(reader.disorder, 0U);
    EXPECT_GE(reader.filled.size(), changes);
}

struct LocalPorts : testing::Test {
    LocalPorts() { EXPECT_TRUE(admin.create_stream("orders", 1)); }

    result<publish_outcome> publish(
        event_sink& sink, const std::vector<std::string>& values, channel where = channel::main
    ) {
        auto batch = std::make_shared<row_batch>();
        for (const auto& value : values) {
            outbox_row row;
            row.id = row_id{static_cast<std::int64_t>(batch->rows().size()) + 1};
            row.topic = "orders";
            row.key = "k";
            row.value = batch->store(value);
            batch->add(row);
        }
        std::vector<outgoing_row> rows;
        for (const auto& row : batch->rows())
            rows.push_back({&row, batch});
        return loop.await<publish_outcome>([&](auto done) {
            sink.publish(where, std::move(rows), epoch{7}, std::move(done));
        });
    }
    std::shared_ptr<const record_batch> read_all() {
        auto db = sqlite::database::open(file, {}).value();
        const shard_id shard{"shardId-000000000000"};
        return local::read_records(db, "orders", shard, read_cursor{"1"}, {}).value().records;
    }

    support::temporary_folder directory;
    std::string file{directory.file("streams.db")};
    test::loop_host loop;
    local_admin admin{local_admin::open_or_create(file).value()};
};

TEST_F(LocalPorts, ALockedFileIsAFaultOfTheRequestAndStopsMain) {
    local_sink sink(loop, file, {.busy_timeout = 20ms});
    auto other = sqlite::database::open(file, {}).value();
    {
        const auto writer = other.begin(sqlite::transaction_kind::immediate).value();
        const auto busy = publish(sink, {"a"});
        ASSERT_FALSE(busy);
        EXPECT_EQ(busy.error().code, errc::unavailable);
        EXPECT_EQ(busy.error().retry, retry_advice::after_delay);
        EXPECT_FALSE(busy.error().in_doubt);
    }
    EXPECT_EQ(publish(sink, {"b"})->failures.at(0).why.code, errc::purged) << "b must not overtake a";
    ASSERT_TRUE(loop.await<void>([&](auto done) { sink.reset_main(std::move(done)); }));
    EXPECT_TRUE(publish(sink, {"a", "b"})->failures.empty());
    EXPECT_EQ(read_all()->records().size(), 2U);
}

TEST_F(LocalPorts, AMissingFileIsNamedAndWhatFollowsIsPurgedUntilItIsThere) {
    const auto later = directory.file("later.db");
    local_sink sink(loop, later);
    const auto missing = publish(sink, {"a"});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, errc::not_found);
    EXPECT_THAT(missing.error().detail, HasSubstr("local:" + later));
    ASSERT_TRUE(local_admin::open_or_create(later)->create_stream("orders", 1));
    EXPECT_EQ(publish(sink, {"b"})->failures.at(0).why.code, errc::purged);
    ASSERT_TRUE(loop.await<void>([&](auto done) { sink.reset_main(std::move(done)); }));
    EXPECT_TRUE(publish(sink, {"a"})->failures.empty());
}

TEST_F(LocalPorts, AResetSucceedsWhileTheFileCannotBeOpened) {
    local_sink sink(loop, directory.file("nowhere.db"));
    EXPECT_FALSE(publish(sink, {"a"}));
    EXPECT_TRUE(loop.await<void>([&](auto done) { sink.reset_main(std::move(done)); }));
}

TEST_F(LocalPorts, AReplacedFileIsOpenedAnew) {
    local_sink sink(loop, file);
    EXPECT_TRUE(publish(sink, {"a"})->failures.empty());
    for (const auto* suffix : {"", "-wal", "-shm"})
        std::filesystem::remove(file + suffix);
    ASSERT_TRUE(local_admin::open_or_create(file)->create_stream("orders", 1));
    EXPECT_TRUE(publish(sink, {"b"})->failures.empty());
    EXPECT_EQ(read_all()->records().front().data, "b") << "nothing goes into the file that is gone";
}

TEST_F(LocalPorts, SuspectsWhatIsLargerThanTheLimits) {
    local_sink sink(loop, file, {.limits = {.key_bytes_max = 3, .value_bytes_max = 5}});
    outbox_row row;
    row.value = "12345";
    row.key = "123";
    EXPECT_FALSE(sink.suspect(row));
    row.value = "123456";
    EXPECT_EQ(sink.suspect(row)->code, errc::refused_record);
    row.value = "";
    row.key = "1234";
    EXPECT_THAT(sink.suspect(row)->detail, HasSubstr("key has 4 bytes"));
}

TEST_F(LocalPorts, MarksRecordsWithOutboxAndEpochWhenAsked) {
    local_sink plain(loop, file);
    local_sink marked(loop, file, {.outbox = "shop"});
    EXPECT_TRUE(publish(plain, {"a"})->failures.empty());
    EXPECT_TRUE(publish(marked, {"b"})->failures.empty());
    const auto batch = read_all();
    EXPECT_TRUE(batch->records()[0].headers.empty());
    ASSERT_EQ(batch->records()[1].headers.size(), 1U);
    EXPECT_EQ(batch->records()[1].headers[0], (record_header{"millrace-outbox", "7 shop"}));
}

TEST_F(LocalPorts, RequestsThatWaitWhenTheSinkEndsAreCompletedAsCancelled) {
    int completions = 0;
    {
        auto other = sqlite::database::open(file, {}).value();
        const auto writer = other.begin(sqlite::transaction_kind::immediate).value();
        local_sink sink(loop, file, {.busy_timeout = 30s});
        for (int i = 0; i < 3; ++i) {
            auto batch = std::make_shared<row_batch>();
            batch->add({.id = row_id{i + 1}, .topic = "orders"});
            sink.publish(channel::main, {{batch->rows().data(), batch}}, epoch{1}, [&](const auto& outcome) {
                ++completions;
                EXPECT_EQ(outcome.error().code, errc::cancelled);
            });
        }
    }
    EXPECT_TRUE(loop.run_until([&] { return completions == 3; }));
    EXPECT_EQ(read_all()->records().size(), 0U);
}

TEST_F(LocalPorts, ASourceReadsAFileThatItMayNotWrite) {
    ASSERT_TRUE(admin.put("orders", std::vector<event>{{.topic = "orders", .key = "k", .value = "v"}}));
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
    local_source source(loop, file, "orders");
    EXPECT_TRUE(loop.await<stream_listing>([&](auto done) { source.list_shards(std::move(done)); }));
}

TEST_F(LocalPorts, ASourceNamesWhatIsMissing) {
    local_source no_file(loop, directory.file("nowhere.db"), "orders");
    const auto missing = loop.await<stream_listing>([&](auto done) { no_file.list_shards(std::move(done)); });
    EXPECT_EQ(missing.error().code, errc::not_found);
    EXPECT_THAT(missing.error().detail, HasSubstr("nowhere.db"));
    local_source no_stream(loop, file, "order");
    const auto unknown =
        loop.await<stream_listing>([&](auto done) { no_stream.list_shards(std::move(done)); });
    EXPECT_EQ(unknown.error().code, errc::not_found);
    EXPECT_THAT(unknown.error().detail, HasSubstr("did you mean \"orders\"?"));
}

TEST_F(LocalPorts, AFileOrStreamThatIsAwayForAMomentEndsNoShard) {
    const shard_id shard{"shardId-000000000000"};
    const auto fault_of = [&](local_source& source) {
        const auto read = loop.await<read_reply>([&](auto done) {
            source.read(shard, read_cursor{"1"}, {}, std::move(done));
        });
        const auto opened = loop.await<read_cursor>([&](auto done) {
            source.open(shard, from::trim_horizon{}, std::move(done));
        });
        EXPECT_FALSE(read || opened);
        EXPECT_EQ(read.error().code, opened.error().code);
        return read.error();
    };
    local_source no_file(loop, directory.file("nowhere.db"), "orders");
    EXPECT_EQ(fault_of(no_file).code, errc::unavailable);
    local_source no_stream(loop, file, "order");
    EXPECT_EQ(fault_of(no_stream).code, errc::unavailable);
    EXPECT_EQ(fault_of(no_stream).retry, retry_advice::after_delay);
}

TEST_F(LocalPorts, WatchTellsOfAnotherProcessesRecordsSoon) {
    local_source source(loop, file, "orders");
    (void)loop.await<stream_listing>([&](auto done) { source.list_shards(std::move(done)); });
    std::vector<nanoseconds> delays;
    bool told = false;
    source.watch([&] { told = true; });
    for (int i = 0; i < 10; ++i) {
        loop.run_for(50ms);
        told = false;
        ASSERT_TRUE(admin.put("orders", std::vector<event>{{.topic = "orders", .value = "v"}}));
        const auto committed = loop.now();
        ASSERT_TRUE(loop.run_until([&] { return told; }));
        delays.push_back(loop.now() - committed);
    }
    std::ranges::sort(delays);
    EXPECT_LE(delays[delays.size() / 2], 25ms);  // 10 ms at most on an idle machine
}

/// Bytes that this process has read from files so far.
std::uint64_t bytes_read() {
    std::ifstream counters("/proc/self/io");
    std::string name;
    std::uint64_t count = 0;
    while (counters >> name >> count) {
        if (name == "rchar:") return count;
    }
    ADD_FAILURE() << "no rchar in /proc/self/io";
    return 0;
}

TEST_F(LocalPorts, ALargeValueIsNotReadAgainByLaterAppends) {
    constexpr std::size_t large = 10'000'000;
    const auto append = [&](std::size_t bytes, std::size_t count) {
        const event one{.topic = "orders", .key = "k", .value = std::string(bytes, 'v')};
        ASSERT_TRUE(admin.put("orders", std::vector<event>(count, one)));
    };
    append(200, 50);
    append(large, 1);
    const auto before = bytes_read();
    for (int transaction = 0; transaction < 250; ++transaction)
        append(200, 20);
    EXPECT_LT(bytes_read() - before, 5 * large);
}

}  // namespace
}  // namespace millrace
