/// An outbox, a stream and a state in files of their own, and handlers that remember what they saw.
#pragma once

#include "local_admin.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <millrace/consumer.hpp>
#include <millrace/event.hpp>
#include <millrace/handler.hpp>
#include <millrace/outbox.hpp>
#include <millrace/relay.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace millrace::test {

struct pipeline_files {
    support::temporary_folder folder;
    std::string outbox = "sqlite:" + folder.file("shop.db");
    std::string sink = "local:" + folder.file("streams.db");
    std::string stream = sink + "/orders";
    std::string state = "sqlite:" + folder.file("state.db");

    [[nodiscard]] relay_settings relay() const {
        relay_settings settings;
        settings.outbox = outbox;
        settings.sink = sink;
        return settings;
    }
    [[nodiscard]] consumer_settings consumer(const std::string& worker) const {
        consumer_settings settings;
        settings.stream = stream;
        settings.group = "billing";
        settings.state = state;
        settings.worker = worker_id(worker);
        settings.threads = 2;
        return settings;
    }

    void make_stream(const std::string& name, std::uint32_t shards) const {
        auto admin = local_admin::open_or_create(folder.file("streams.db"));
        ASSERT_TRUE(admin) << admin.error().detail;
        const auto made = admin->create_stream(name, shards);
        ASSERT_TRUE(made) << made.error().detail;
    }

    /// Straight into the stream, without an outbox.
    void put(const std::vector<event>& events) const {
        auto admin = local_admin::open(folder.file("streams.db"));
        ASSERT_TRUE(admin) << admin.error().detail;
        const auto done = admin->put("orders", events);
        ASSERT_TRUE(done) << done.error().detail;
    }
};

/// The application: a connection to its own database.
class writer {
public:
    explicit writer(const pipeline_files& files) {
        EXPECT_EQ(sqlite3_open(files.folder.file("shop.db").c_str(), &db_), SQLITE_OK);
        sqlite3_busy_timeout(db_, 10'000);
        const auto made = create_outbox(db_);
        EXPECT_TRUE(made) << made.error().detail;
    }
    ~writer() { sqlite3_close(db_); }
    writer(const writer&) = delete;
    writer& operator=(const writer&) = delete;

    /// One transaction.
    void commit(const std::vector<event>& events) {
        auto outbox = outbox_writer::open(db_);
        ASSERT_TRUE(outbox) << outbox.error().detail;
        execute("BEGIN IMMEDIATE");
        for (const auto& what : events) {
            const auto id = outbox->add(what);
            ASSERT_TRUE(id) << id.error().detail;
        }
        execute("COMMIT");
    }

    [[nodiscard]] std::int64_t rows(const std::string& table) {
        sqlite3_stmt* count = nullptr;
        const auto sql = "SELECT count(*) FROM " + table;
        EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &count, nullptr), SQLITE_OK)
            << sqlite3_errmsg(db_);
        EXPECT_EQ(sqlite3_step(count), SQLITE_ROW);
        const auto rows = sqlite3_column_int64(count, 0);
        sqlite3_finalize(count);
        return rows;
    }

    void execute(const char* sql) {
        ASSERT_EQ(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db_);
    }

private:
    sqlite3* db_{nullptr};
};

/// Runs a relay or a consumer on a thread of its own until it is told to stop.
template <class Service>
class background {
public:
    template <class... Args>
    explicit background(Args&&... args)
        : service_(std::forward<Args>(args)...), thread_([this](const std::stop_token& stop) {
              outcome_ = service_.run(stop);
              ended_ = true;
          }) {}

    auto stop() {
        thread_.request_stop();
        return wait();
    }
    auto wait() {
        if (thread_.joinable()) thread_.join();
        return *outcome_;
    }
    [[nodiscard]] bool ended() const { return ended_; }
    Service& operator*() { return service_; }

private:
    Service service_;
    std::optional<decltype(std::declval<Service>().run())> outcome_;
    std::atomic<bool> ended_{false};
    std::jthread thread_;
};

/// Event `number` of a key that it shares with every `keys`th; the value is the number.
[[nodiscard]] inline event numbered(std::uint64_t number, std::uint64_t keys) {
    return {
        .topic = "orders", .key = "key-" + std::to_string(number % keys), .value = std::to_string(number)};
}

/// What several consumers of one group received, in true order per key. Thread-safe.
class receipts {
public:
    void note(const record& r) {
        const auto number = std::stoull(std::string(r.data.value()));
        const std::lock_guard lock(mutex_);
        ++received_;
        if (!distinct_.insert(number).second) return;
        auto& last = last_of_key_[std::string(r.key.value())];
        if (number < last) ++out_of_order_;
        last = number;
    }
    [[nodiscard]] std::uint64_t received() const { return with_lock(received_); }
    [[nodiscard]] std::uint64_t out_of_order() const { return with_lock(out_of_order_); }
    [[nodiscard]] std::size_t distinct() const {
        const std::lock_guard lock(mutex_);
        return distinct_.size();
    }

private:
    [[nodiscard]] std::uint64_t with_lock(const std::uint64_t& value) const {
        const std::lock_guard lock(mutex_);
        return value;
    }

    mutable std::mutex mutex_;
    std::uint64_t received_{0};
    std::uint64_t out_of_order_{0};
    std::set<std::uint64_t> distinct_;
    std::map<std::string, std::uint64_t> last_of_key_;
};

/// Notes every record and acknowledges the whole batch.
class noting_handler : public record_handler {
public:
    explicit noting_handler(receipts& to) : to_(to) {}
    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery&) override {
        for (const auto& r : batch->records())
            to_.note(r);
        return handled::all;
    }

private:
    receipts& to_;
};

}  // namespace millrace::test
