#include "postgres_shop.hpp"

#include "support/delivery_check.hpp"
#include "support/sql_connection.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace millrace::demo {

namespace {

constexpr std::uint64_t orders_per_transaction = 10;
constexpr auto pause = std::chrono::milliseconds{2};  // after each transaction

const std::string make_orders =
    "CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL, total numeric(12, 2) NOT NULL, "
    "placed_at timestamptz(3) NOT NULL DEFAULT clock_timestamp())";

const std::string insert_orders =
    "INSERT INTO orders (id, customer, total) SELECT n, 'customer-' || n * 7919 % 500, (100 + n * 37 % "
    "99900) "
    "/ 100.0 FROM generate_series($1::bigint, $2::bigint) n";

const std::string insert_events =
    "INSERT INTO outbox (topic, key, value, header_names, header_values) SELECT $3, convert_to(customer, "
    "'UTF8'), "
    "convert_to(json_build_object('order', id, 'customer', customer, 'total', total, 'placed_at', "
    "to_char(placed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'))::text, 'UTF8'), ARRAY[$4], "
    "ARRAY[convert_to(id::text, 'UTF8')] FROM orders WHERE id BETWEEN $1::bigint AND $2::bigint ORDER BY id";

}  // namespace

postgres_shop::postgres_shop(std::string database, std::string topic, std::uint64_t orders)
    : database_(std::move(database)), topic_(std::move(topic)), orders_(orders), committed_at_(orders + 1) {}

void postgres_shop::write() {
    support::sql_connection sql{database_};
    sql.execute(make_orders);
    for (std::uint64_t next = 1; next <= orders_;) {
        const auto last = std::min(next + orders_per_transaction - 1, orders_);
        sql.execute("BEGIN");
        sql.query(insert_orders, {std::to_string(next), std::to_string(last)});
        sql.query(
            insert_events,
            {std::to_string(next), std::to_string(last), topic_, std::string(support::event_number_header)}
        );
        sql.execute("COMMIT");
        committed(next, last);
        next = last + 1;
        std::this_thread::sleep_for(pause);
    }
}

postgres_shop::clock::time_point postgres_shop::committed_at(std::uint64_t number) const {
    const std::lock_guard lock{mutex_};
    return number < committed_at_.size() ? committed_at_[number] : clock::time_point{};
}

void postgres_shop::committed(std::uint64_t first, std::uint64_t last) {
    const auto now = clock::now();
    const std::lock_guard lock{mutex_};
    for (auto number = first; number <= last; ++number)
        committed_at_[number] = now;
    written_ = last;
}

}  // namespace millrace::demo
