// An application that only writes into an outbox in SQLite: it needs neither libpq nor librdkafka.
#include <millrace/outbox.hpp>

#include <iostream>

#include <sqlite3.h>

int main() {
    sqlite3* db = nullptr;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
    int status = 1;
    if (millrace::create_outbox(db)) {
        auto writer = millrace::outbox_writer::open(db);
        status = writer && writer->add({.topic = "orders", .key = "1", .value = "paid"}) ? 0 : 1;
    }
    sqlite3_close(db);
    if (status != 0) std::cerr << "the event was not written\n";
    return status;
}
