#include "contract/outbox_worlds.hpp"

#include "contract/loop_host.hpp"
#include "database.hpp"
#include "fake_outbox.hpp"
#include "lease_tables.hpp"
#include "sqlite_outbox.hpp"
#include "sqlite_outbox_admin.hpp"
#include "support/temporary_folder.hpp"

#include <millrace/outbox.hpp>

#include <stdexcept>
#include <utility>

namespace millrace::test {

namespace {

/// The outcome, or the end of the test.
template <class T>
T sure(result<T> outcome) {
    if (!outcome) throw std::runtime_error(outcome.error().detail);
    if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

class sqlite_outbox_world final : public outbox_world {
public:
    sqlite_outbox_world() { sure(lease_tables::ensure(db_)); }

    outbox_source& source() override { return source_; }
    bool run_until(const std::function<bool()>& condition) override { return home_.run_until(condition); }

    row_id put(const event& what) override {
        return sure(sure(outbox_writer::open(db_.handle(), {.event_bytes_max = 10'000'000})).add(what));
    }
    row_id put_malformed(const event& what) override {
        sure(db_.run(
            "INSERT INTO outbox (topic, key, value, headers) VALUES (?, ?, ?, 'not JSON')",
            what.topic,
            what.key,
            what.value
        ));
        return row_id{db_.last_insert_id()};
    }
    void skip_ids(std::int64_t count) override {
        sure(db_.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'outbox'", count));
    }
    void put_at(row_id id, const event& what) override {
        sure(db_.run("INSERT INTO outbox (id, topic, key) VALUES (?, ?, ?)", id.value(), what.topic, what.key)
        );
    }
    void own(epoch owner) override {
        shard_row row;
        row.shard = shard_id{sqlite_outbox::lease_shard};
        row.epoch = owner;
        row.version = version{1};
        sure(lease_tables::write(db_, {"", sqlite_outbox::lease_group}, row, std::nullopt));
    }
    std::size_t replay(const lane_key& lane) override {
        return sure(admin_.retry_dead({.ids = {}, .topic = lane.topic, .key = lane.key}));
    }
    std::size_t drop(const lane_key& lane) override {
        return sure(admin_.drop_dead({.ids = {}, .topic = lane.topic, .key = lane.key}));
    }
    void recreate() override {
        sure(db_.execute("DROP TABLE outbox"));
        sure(create_outbox(db_.handle()));
    }
    std::vector<dead> dead_rows() override {
        std::vector<dead> rows;
        for (const auto& d : sure(admin_.list_dead({})))
            rows.push_back({d.id, d.reason, d.error, d.attempts});
        return rows;
    }

private:
    support::temporary_folder files_;
    std::string path_ = files_.file("app.db");
    loop_host home_;
    sqlite_outbox_admin admin_ = sure(sqlite_outbox_admin::init(path_));
    sqlite::database db_ = sure(sqlite::database::open(path_, {}));
    sqlite_outbox source_{home_, {.path = path_, .busy_timeout = milliseconds{10'000}}};
};

class fake_outbox_world final : public outbox_world {
public:
    fake_outbox_world() {
        table_.owner_epoch = [this] { return owner_; };
    }

    outbox_source& source() override { return source_; }
    bool run_until(const std::function<bool()>& condition) override {
        const auto end = world_.now() + std::chrono::seconds{10};
        while (!condition()) {
            if (world_.now() > end || !world_.step()) return condition();
        }
        return true;
    }

    row_id put(const event& what) override { return table_.put(what); }
    row_id put_malformed(const event& what) override { return table_.put(what, "broken headers"); }
    void skip_ids(std::int64_t count) override { table_.skip_ids(count); }
    void put_at(row_id id, const event& what) override {
        const auto writer = table_.begin();
        table_.insert(writer, id, what);
        table_.commit(writer);
    }
    void own(epoch owner) override { owner_ = owner; }
    std::size_t replay(const lane_key& lane) override { return table_.replay(lane); }
    std::size_t drop(const lane_key& lane) override { return table_.drop(lane); }
    void recreate() override {
        table_.remove({{row_id{0}, row_id{1'000'000}}});
        table_.recreate();
    }
    std::vector<dead> dead_rows() override {
        std::vector<dead> rows;
        for (const auto& d : table_.dead())
            rows.push_back({d.row.id, d.reason, d.detail, d.attempts});
        return rows;
    }

private:
    sim::scheduler world_;
    sim::rng random_{1};
    sim::faults plan_;
    epoch owner_;
    sim::sim_host home_{world_, random_};
    sim::outbox_table table_{world_, true};
    sim::fake_outbox source_{table_, world_, home_, random_, plan_};
};

}  // namespace

std::unique_ptr<outbox_world> make_sqlite_outbox_world() {
    return std::make_unique<sqlite_outbox_world>();
}

std::unique_ptr<outbox_world> make_fake_outbox_world() {
    return std::make_unique<fake_outbox_world>();
}

}  // namespace millrace::test
