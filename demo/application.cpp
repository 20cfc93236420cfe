#include "application.hpp"

#include "local_url.hpp"
#include "ndjson.hpp"
#include "support/delivery_check.hpp"
#include "support/process.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <sqlite3.h>

namespace millrace::demo {

namespace {

namespace json = boost::json;

constexpr std::uint64_t orders_per_transaction = 5;
constexpr std::size_t lines_per_transaction = 200;

struct close_database {
    void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
struct close_statement {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
};
using database_handle = std::unique_ptr<sqlite3, close_database>;
using statement_handle = std::unique_ptr<sqlite3_stmt, close_statement>;

void check(sqlite3* db, int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW) {
        throw std::runtime_error(fmt::format("the application's database: {}", sqlite3_errmsg(db)));
    }
}

void execute(sqlite3* db, const char* sql) {
    check(db, sqlite3_exec(db, sql, nullptr, nullptr, nullptr));
}

statement_handle prepare(sqlite3* db, const char* sql) {
    sqlite3_stmt* statement = nullptr;
    check(db, sqlite3_prepare_v2(db, sql, -1, &statement, nullptr));
    return statement_handle{statement};
}

void bind_text(sqlite3_stmt* statement, int index, const std::string& text) {
    sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
}

void step(sqlite3* db, sqlite3_stmt* statement) {
    check(db, sqlite3_step(statement));
    check(db, sqlite3_reset(statement));
}

database_handle open(const std::filesystem::path& path) {
    sqlite3* db = nullptr;
    const int code = sqlite3_open(path.c_str(), &db);
    database_handle handle{db};
    check(db, code);
    sqlite3_busy_timeout(db, 10'000);
    execute(db, "PRAGMA synchronous = NORMAL");
    return handle;
}

json::value number_header(std::uint64_t number) {
    return json::array{json::string(support::event_number_header), json::string(std::to_string(number))};
}

std::string headers_of(std::uint64_t number) {
    json::array headers;
    headers.push_back(number_header(number));
    return json::serialize(headers);
}

/// Puts the number into the text of an event: parsed and written anew, numbers of it would look different.
std::string with_number(std::string line, std::uint64_t number) {
    const auto header = json::serialize(number_header(number));
    const auto headers = app::field_text(line, "headers");
    if (headers.empty()) return line.insert(line.find('{') + 1, fmt::format("\"headers\":[{}],", header));
    const auto at = static_cast<std::size_t>(headers.data() - line.data());
    const auto size = headers.size();
    if (headers.front() != '[') return line.replace(at, size, fmt::format("[{}]", header));
    const bool more = headers.find_first_not_of(" \t\r", 1) != size - 1;
    return line.insert(at + 1, header + (more ? "," : ""));
}

}  // namespace

workload read_events(const std::filesystem::path& path) {
    if (std::filesystem::is_directory(path)) {
        throw std::runtime_error(
            fmt::format("{}: is a directory; give a file with one JSON event a line", path.string())
        );
    }
    std::ifstream file{path};
    if (!file)
        throw std::runtime_error(
            fmt::format("{}: cannot be read; give a file with one JSON event a line", path.string())
        );
    workload work;
    work.topics.clear();
    std::string line;
    for (std::uint64_t number = 1; std::getline(file, line); ++number) {
        constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
        if (number == 1 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const auto refuse = [&](const error& why) {
            throw input_fault(fmt::format("{}:{}: {}", path.string(), number, why.detail));
        };
        const auto understood = app::parse_event(line);
        if (!understood) refuse(understood.error());
        const auto& name = understood->topic;
        if (const auto usable = check_stream_name(name); !usable) refuse(usable.error());
        if (std::ranges::find(work.topics, name) == work.topics.end()) work.topics.push_back(name);
        work.lines.push_back(with_number(line, work.lines.size() + 1));
    }
    if (work.lines.empty()) throw input_fault(fmt::format("{}: holds no event", path.string()));
    return work;
}

application::application(std::string millrace, std::filesystem::path database, workload work)
    : millrace_(std::move(millrace)), database_(std::move(database)), work_(std::move(work)) {
    committed_at_.resize(work_.events() + 1);
}

void application::write() {
    if (work_.lines.empty()) {
        write_orders();
    } else {
        write_lines();
    }
}

wall_clock::time_point application::committed_at(std::uint64_t number) const {
    const std::lock_guard lock{mutex_};
    return number < committed_at_.size() ? committed_at_[number] : wall_clock::time_point{};
}

void application::committed(std::uint64_t first, std::uint64_t last) {
    const auto now = wall_clock::now();
    const std::lock_guard lock{mutex_};
    for (auto number = first; number <= last; ++number)
        committed_at_[number] = now;
    written_ = last;
}

void application::write_orders() {
    const auto db = open(database_);
    execute(
        db.get(),
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL)"
    );
    const auto order = prepare(db.get(), "INSERT INTO orders (id, customer, cents) VALUES (?, ?, ?)");
    const auto event =
        prepare(db.get(), "INSERT INTO outbox (topic, key, value, headers) VALUES ('orders', ?, ?, ?)");

    for (std::uint64_t next = 1; next <= work_.orders;) {
        const auto last = std::min(next + orders_per_transaction - 1, work_.orders);
        execute(db.get(), "BEGIN IMMEDIATE");
        for (auto id = next; id <= last; ++id) {
            const auto customer = fmt::format("customer-{}", id * 7919 % work_.customers);
            const auto cents = static_cast<sqlite3_int64>(100 + id * 37 % 99'900);
            sqlite3_bind_int64(order.get(), 1, static_cast<sqlite3_int64>(id));
            bind_text(order.get(), 2, customer);
            sqlite3_bind_int64(order.get(), 3, cents);
            step(db.get(), order.get());

            bind_text(event.get(), 1, customer);
            bind_text(
                event.get(),
                2,
                fmt::format(R"({{"order":{},"customer":"{}","cents":{}}})", id, customer, cents)
            );
            bind_text(event.get(), 3, headers_of(id));
            step(db.get(), event.get());
        }
        execute(db.get(), "COMMIT");
        committed(next, last);
        next = last + 1;
        if (work_.pause.count() > 0) std::this_thread::sleep_for(work_.pause);
    }
}

void application::write_lines() {
    for (std::size_t next = 0; next < work_.lines.size();) {
        const auto count = std::min(lines_per_transaction, work_.lines.size() - next);
        std::string input;
        for (std::size_t i = 0; i < count; ++i)
            input += work_.lines[next + i] + "\n";
        const auto put =
            support::run({millrace_, "outbox", "put", "--outbox", "sqlite:" + database_.string()}, input);
        if (put.status != 0) {
            throw std::runtime_error(
                fmt::format("outbox put refused the events after event {}: {}", next, put.errors)
            );
        }
        committed(next + 1, next + count);
        next += count;
    }
}

}  // namespace millrace::demo
