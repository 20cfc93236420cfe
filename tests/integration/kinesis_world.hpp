/// A stream on the stand-in of the Kinesis API, a state in a file, and handlers that remember what they saw.
#pragma once

#include "pipeline.hpp"
#include "support/kinesis_fake/server.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace millrace::test {

using namespace std::chrono_literals;
using kinesis_fake::fault;
using kinesis_fake::shard_name;

/// What handlers were given, in the order in which they were given it. Thread-safe.
class kinesis_receipts {
public:
    struct entry {
        std::string shard;
        std::string key;
        std::string data;
    };

    void note(const record_batch& batch) {
        const std::lock_guard lock(mutex_);
        for (const auto& r : batch.records()) {
            entries_.push_back({batch.shard().value(), std::string(*r.key), std::string(*r.data)});
            distinct_.insert(entries_.back().data);
        }
        changed_.notify_all();
    }
    /// Until so many different data were given; false when that lasts too long.
    [[nodiscard]] bool wait(std::size_t distinct, std::chrono::milliseconds limit = 30s) const {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, limit, [&] { return distinct_.size() >= distinct; });
    }
    [[nodiscard]] std::vector<entry> entries() const {
        const std::lock_guard lock(mutex_);
        return entries_;
    }
    /// Data of all shards, or of one.
    [[nodiscard]] std::vector<std::string> data(const std::string& shard = {}) const {
        std::vector<std::string> all;
        for (const auto& e : entries()) {
            if (shard.empty() || e.shard == shard) all.push_back(e.data);
        }
        return all;
    }
    [[nodiscard]] std::size_t distinct() const {
        const std::lock_guard lock(mutex_);
        return distinct_.size();
    }

private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::vector<entry> entries_;
    std::set<std::string> distinct_;
};

/// Notes every batch, then does what the test wants; by default it acknowledges the whole.
class kinesis_handler : public record_handler {
public:
    using action = std::function<result<handled>(const record_batch&, const delivery&)>;

    explicit kinesis_handler(kinesis_receipts& to, action act = {}) : to_(to), act_(std::move(act)) {}

    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        to_.note(*batch);
        return act_ ? act_(*batch, how) : handled::all;
    }

private:
    kinesis_receipts& to_;
    action act_;
};

class kinesis_world {
public:
    explicit kinesis_world(std::uint32_t shards, kinesis_fake::server_options options = {})
        : fake(with_keys(std::move(options))) {
        fake.with([&](auto in) { EXPECT_TRUE(in.model.create("orders", shards)); });
    }

    /// Impatient: what takes seconds in production takes milliseconds here.
    [[nodiscard]] consumer_settings settings(const std::string& worker = "w") const {
        consumer_settings made;
        made.stream = fake.url("orders");
        made.group = "billing";
        made.state = state;
        made.worker = worker_id(worker);
        made.threads = 2;
        made.lease = 3s;
        made.sharing.tick = 50ms;
        made.sharing.shard_list_every = 200ms;
        made.sharing.discover_every = 200ms;
        made.sharing.checkpoint_every = 20ms;
        made.sharing.drain_limit = 1s;
        made.reading.tip_interval = 100ms;
        made.reading.retry_min = 10ms;
        made.reading.backoff_min = 10ms;
        made.reading.backoff_max = 200ms;
        return made;
    }

    void put(const std::string& key, const std::string& data) {
        fake.with([&](auto in) { in.model.append("orders", key, data); });
    }
    kinesis_fake::written put_to(std::uint32_t shard, const std::string& data, const std::string& key = "k") {
        kinesis_fake::written done;
        fake.with([&](auto in) { done = in.model.append_to("orders", shard_name(shard), key, data); });
        return done;
    }
    void split(std::uint32_t shard) {
        fake.with([&](auto in) { in.model.split_in_middle("orders", shard_name(shard)); });
    }
    void add(kinesis_fake::fault_rule rule) {
        fake.with([&](auto in) { in.faults.add(std::move(rule)); });
    }
    void mend() {
        fake.with([](auto in) { in.faults.clear(); });
    }

    /// Reads until so many different data came, then stops; what was given in that run.
    std::vector<std::string> read(std::size_t distinct, consumer_settings with) {
        kinesis_receipts seen;
        kinesis_handler handler(seen);
        background<consumer> running(std::move(with), handler);
        EXPECT_TRUE(seen.wait(distinct));
        const auto ended = running.stop();
        EXPECT_TRUE(ended) << ended.error().detail;
        return seen.data();
    }
    std::vector<std::string> read(std::size_t distinct) { return read(distinct, settings()); }

    /// Straight into the state.
    void execute(const std::string& sql) {
        sqlite3* db = nullptr;
        ASSERT_EQ(sqlite3_open(folder.file("state.db").c_str(), &db), SQLITE_OK);
        sqlite3_busy_timeout(db, 10'000);
        EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
        EXPECT_EQ(sqlite3_changes(db), 1) << sql;
        sqlite3_close(db);
    }
    void set_checkpoint(std::uint32_t shard, const std::string& sequence) {
        execute(
            "UPDATE millrace_shard SET sequence = '" + sequence + "', sub_sequence = 0, arrival = " +
            std::to_string(
                std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
                    .count()
            ) +
            " WHERE shard = '" + shard_name(shard) + "'"
        );
    }

    kinesis_fake::server fake;
    support::temporary_folder folder;
    std::string state = "sqlite:" + folder.file("state.db");

private:
    /// The keys that the stand-in knows, where the library looks for them first.
    static kinesis_fake::server_options with_keys(kinesis_fake::server_options options) {
        static std::once_flag set;
        std::call_once(set, [&] {
            ::setenv("AWS_ACCESS_KEY_ID", "AKIDFAKE", 1);
            ::setenv("AWS_SECRET_ACCESS_KEY", options.secret.c_str(), 1);
        });
        return options;
    }
};

using texts = std::vector<std::string>;

/// `prefix1`, `prefix2` and so on.
[[nodiscard]] inline texts numbered_texts(const std::string& prefix, int first, int last) {
    texts all;
    for (int i = first; i <= last; ++i)
        all.push_back(prefix + std::to_string(i));
    return all;
}

}  // namespace millrace::test
