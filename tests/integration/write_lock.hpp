/// Holds the write lock of a SQLite file, as a long transaction of another program does.
#pragma once

#include <string>

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace millrace::cli {

class write_lock {
public:
    explicit write_lock(const std::string& file) {
        EXPECT_EQ(sqlite3_open(file.c_str(), &db_), SQLITE_OK);
        sqlite3_busy_timeout(db_, 5000);
        EXPECT_EQ(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
    }
    ~write_lock() { sqlite3_close(db_); }
    write_lock(const write_lock&) = delete;
    write_lock& operator=(const write_lock&) = delete;

private:
    sqlite3* db_{nullptr};
};

}  // namespace millrace::cli
