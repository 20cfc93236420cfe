// An application writes an order and its event in one transaction of its own; a relay takes it from there.
// usage: outbox_writer DATABASE ORDER
#include <millrace/outbox.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include <sqlite3.h>

namespace {

bool execute(sqlite3* db, const char* sql) {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return true;
    std::fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    return false;
}

bool complain(const millrace::error& why) {
    std::fprintf(stderr, "%s\n", why.detail.c_str());
    return false;
}

bool make_tables(sqlite3* db) {
    if (!execute(db, "CREATE TABLE IF NOT EXISTS orders (name TEXT PRIMARY KEY)")) return false;
    const auto made = millrace::create_outbox(db);
    return made || complain(made.error());
}

bool write_order(sqlite3* db, const std::string& order) {
    auto outbox = millrace::outbox_writer::open(db);
    if (!outbox) return complain(outbox.error());
    if (!execute(db, "BEGIN IMMEDIATE")) return false;
    const std::unique_ptr<char, decltype(&sqlite3_free)> insert(
        sqlite3_mprintf("INSERT INTO orders (name) VALUES (%Q)", order.c_str()), sqlite3_free
    );
    const auto id = outbox->add({.topic = "orders", .key = order, .value = "placed " + order});
    if (!id) return complain(id.error());
    return execute(db, insert.get()) && execute(db, "COMMIT");  // both or neither
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return std::fputs("usage: outbox_writer DATABASE ORDER\n", stderr), 2;
    sqlite3* db = nullptr;
    if (sqlite3_open(argv[1], &db) != SQLITE_OK) return std::fprintf(stderr, "%s\n", sqlite3_errmsg(db)), 1;
    sqlite3_busy_timeout(db, 5'000);
    const bool written = make_tables(db) && write_order(db, argv[2]);
    sqlite3_close(db);  // rolls back what was not committed
    return written ? 0 : 1;
}
