#include "support/keyed_writers.hpp"

#include "support/sql_connection.hpp"

#include <chrono>
#include <set>
#include <utility>

namespace millrace::support {

namespace {

constexpr auto before_the_next_connection = std::chrono::milliseconds{100};
constexpr std::uint32_t lanes_of_a_transaction = 8;
constexpr std::chrono::milliseconds longest_pause{20};

// The counter's row is locked before outbox_put draws an id.
const std::string put =
    "WITH next AS (UPDATE numbers SET n = n + 1 WHERE topic = $1 AND key = $2 RETURNING n) SELECT "
    "outbox_put($1, convert_to($2, 'UTF8'), convert_to(rpad(n || ' ', $3::int, 'x'), 'UTF8')) FROM next";

std::uint32_t pick(std::mt19937& random, std::size_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
}

}  // namespace

keyed_writers::keyed_writers(std::string url, writing what) : url_(std::move(url)), what_(std::move(what)) {
    sql_connection sql{url_};
    sql.execute(
        "CREATE TABLE numbers (topic text, key text, n bigint NOT NULL DEFAULT 0, PRIMARY KEY (topic, key)) "
        "WITH (fillfactor = 20)"
    );
    for (const auto& topic : what_.topics) {
        sql.query(
            "INSERT INTO numbers (topic, key) SELECT $1, 'key-' || i FROM generate_series(1, $2::int) i",
            {topic, std::to_string(what_.keys)}
        );
    }
    std::random_device seeds;
    for (int i = 0; i < what_.writers; ++i)
        threads_.emplace_back([this, seed = seeds()] { write(seed); });
}

keyed_writers::~keyed_writers() {
    stop();
}

void keyed_writers::stop() {
    stops_ = true;
    for (auto& thread : threads_)
        if (thread.joinable()) thread.join();
}

void keyed_writers::write(std::uint32_t seed) {
    std::mt19937 random{seed};
    while (!stops_) {
        try {
            write_through_one_connection(random);
        } catch (const sql_error&) {
            // The server was stopped, or the connection cut: the table of numbers knows what was committed.
            ++reconnects_;
            std::this_thread::sleep_for(before_the_next_connection);
        }
    }
}

void keyed_writers::write_through_one_connection(std::mt19937& random) {
    sql_connection sql{url_};
    sql.execute("SET lock_timeout = '20s'");
    auto begin = std::chrono::steady_clock::now();
    while (!stops_) {
        const auto rows = transaction(sql, random);
        if (what_.rows_per_second <= 0) continue;
        const std::chrono::duration<double> share{
            static_cast<double>(rows) * what_.writers / what_.rows_per_second};
        begin += std::chrono::duration_cast<std::chrono::steady_clock::duration>(share);
        std::this_thread::sleep_until(begin);
    }
}

/// The number of rows that were written, also when they were rolled back.
std::uint64_t keyed_writers::transaction(sql_connection& sql, std::mt19937& random) {
    // In one order in all transactions, so that no two wait for each other.
    std::set<std::pair<std::string, std::string>> lanes;
    for (auto count = 1 + pick(random, lanes_of_a_transaction); count > 0; --count) {
        lanes.emplace(
            what_.topics[pick(random, what_.topics.size())],
            "key-" + std::to_string(1 + pick(random, static_cast<std::size_t>(what_.keys)))
        );
    }
    sql.execute("BEGIN");
    for (const auto& [topic, key] : lanes) {
        const bool large = pick(random, 100) < static_cast<std::uint32_t>(what_.large_percent);
        sql.query(put, {topic, key, std::to_string(large ? what_.large_bytes : what_.small_bytes)});
        if (pick(random, 40) == 0) std::this_thread::sleep_for(longest_pause * pick(random, 100) / 100);
    }
    if (pick(random, 5) == 0) {
        sql.execute("ROLLBACK");
        ++rollbacks_;
    } else {
        sql.execute("COMMIT");
        rows_ += lanes.size();
    }
    return lanes.size();
}

void keyed_writers::judge(keyed_check& check) const {
    sql_connection sql{url_};
    for (const auto& lane : sql.query("SELECT topic, key, n FROM numbers"))
        check.committed(lane.at(0).value(), lane.at(1).value(), std::stoull(lane.at(2).value()));
}

}  // namespace millrace::support
