// Counts the orders of each product, every order exactly once: the counts and the position up to which they
// hold are committed together. Needs, in the same database: CREATE TABLE order_counts (product text PRIMARY
// KEY, orders bigint NOT NULL)
// usage: exactly_once STREAM_URL GROUP POSTGRESQL_URL [LEASE_SECONDS]   (local:streams.db/orders billing …)
#include <millrace/consumer.hpp>
#include <millrace/postgres_checkpoint.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include <libpq-fe.h>

class count_orders final : public millrace::record_handler {
public:
    explicit count_orders(std::string database) : database_(std::move(database)) {}

    void assigned(const millrace::shard_grant& grant) override {
        auto opened = millrace::postgres_checkpoint::open(grant);
        if (!opened) throw std::runtime_error(opened.error().detail);
        const std::lock_guard lock(mutex_);
        checkpoints_[grant.shard] = std::make_shared<millrace::postgres_checkpoint>(std::move(*opened));
    }

    millrace::result<millrace::handled> handle(
        const std::shared_ptr<const millrace::record_batch>& batch, const millrace::delivery& how
    ) override {
        const auto checkpoint = find(batch->shard());
        // One connection a thread of the consumer, however many shards there are.
        thread_local const std::unique_ptr<PGconn, decltype(&PQfinish)> connection{
            PQconnectdb(database_.c_str()), &PQfinish};
        PGconn* const db = connection.get();
        if (PQstatus(db) != CONNECTION_OK) PQreset(db);
        if (checkpoint->in_doubt()) {  // the reply to a commit was lost
            if (auto known = checkpoint->committed(db); !known) return tl::unexpected(known.error());
        }
        const auto& last = batch->records().back();
        if (checkpoint->has(last)) return millrace::handled::all;
        auto done = checkpoint->begin(db, how);
        if (done) done = count(*batch, *checkpoint, db);
        if (done) done = checkpoint->advance(db, how, last);
        if (done) done = checkpoint->commit(db);
        if (done) return millrace::handled::all;
        checkpoint->roll_back(db);
        return tl::unexpected(done.error());  // the records come again, here or at another worker
    }

private:
    static millrace::result<void> count(
        const millrace::record_batch& batch, const millrace::postgres_checkpoint& checkpoint, PGconn* db
    ) {
        constexpr const char* sql =
            "INSERT INTO order_counts VALUES ($1, 1) ON CONFLICT (product) DO UPDATE SET orders = "
            "order_counts.orders + 1";
        for (const auto& order : batch.records()) {
            if (checkpoint.has(order)) continue;
            const std::string product(order.key.value_or(""));
            const char* const values[] = {product.c_str()};
            const std::unique_ptr<PGresult, decltype(&PQclear)> counted{
                PQexecParams(db, sql, 1, nullptr, values, nullptr, nullptr, 0), &PQclear};
            if (PQresultStatus(counted.get()) != PGRES_COMMAND_OK) {
                return millrace::fail(millrace::errc::handler_failed, PQerrorMessage(db));
            }
        }
        return {};
    }

    std::shared_ptr<millrace::postgres_checkpoint> find(const millrace::shard_id& shard) {
        const std::lock_guard lock(mutex_);
        return checkpoints_.at(shard);
    }

    const std::string database_;
    std::mutex mutex_;
    std::map<millrace::shard_id, std::shared_ptr<millrace::postgres_checkpoint>> checkpoints_;
};

int main(int argc, char** argv) {
    if (argc < 4)
        return std::fputs("usage: exactly_once STREAM_URL GROUP POSTGRESQL_URL [LEASE_SECONDS]\n", stderr), 2;
    millrace::consumer_settings settings;
    settings.stream = argv[1];
    settings.group = argv[2];
    settings.state = argv[3];
    settings.reading.checkpoints = millrace::checkpoint_writer::handler;
    settings.reading.batch_records = 100;
    settings.stop_on_signals = true;
    if (argc > 4) settings.lease = std::chrono::seconds{std::atoi(argv[4])};

    count_orders handler(argv[3]);
    millrace::consumer consumer(std::move(settings), handler);
    if (const auto outcome = consumer.run(); !outcome) {
        std::fprintf(stderr, "%s\n", outcome.error().detail.c_str());
        return 1;
    }
    return 0;
}
