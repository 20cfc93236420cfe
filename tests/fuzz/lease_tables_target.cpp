#include "lease_tables.hpp"
#include "targets.hpp"

#include <cstring>
#include <string>
#include <type_traits>

namespace millrace::fuzz {

namespace {

/// Takes column values off the front of the input. A text that is a number becomes one by the column's
/// affinity, also a real.
class column_reader {
public:
    explicit column_reader(std::string_view input) : rest_(input) {}

    void bind_next(sqlite::statement& to, int parameter) {
        switch (byte() % 5) {
            case 0:
                return to.bind(parameter, std::nullopt);
            case 1:
                return to.bind(parameter, std::int64_t{byte()});
            case 2:
                return to.bind(parameter, number());
            case 3:
                return to.bind(parameter, sqlite::blob_view{bytes()});
            default:
                return to.bind(parameter, bytes());
        }
    }

private:
    unsigned char byte() {
        if (rest_.empty()) return 0;
        const auto first = static_cast<unsigned char>(rest_.front());
        rest_.remove_prefix(1);
        return first;
    }
    std::int64_t number() {
        std::int64_t value = 0;
        const auto taken = bytes_of(sizeof value);
        std::memcpy(&value, taken.data(), taken.size());
        return value;
    }
    std::string_view bytes() { return bytes_of(byte() % 54); }
    std::string_view bytes_of(std::size_t most) {
        const auto taken = rest_.substr(0, most);
        rest_.remove_prefix(taken.size());
        return taken;
    }

    std::string_view rest_;
};

const group_key group{"s", "g"};
const group_key copy{"s", "copy"};

sqlite::database& tables() {
    static auto db = [] {
        auto made = sqlite::database::open(
            ":memory:",
            {.mode = sqlite::open_mode::create,
             .wal = false,
             .sync = sqlite::durability::normal,
             .name = ":memory:"}
        );
        require(made && lease_tables::ensure(*made), "the tables can be made");
        return std::move(*made);
    }();
    return db;
}

/// Adds a row of the group with so many columns; one that the layout refuses is left out.
void insert(column_reader& from, std::string_view table, int columns) {
    std::string sql = "INSERT OR IGNORE INTO millrace_" + std::string(table) + " VALUES ('s','g'";
    for (int i = 0; i < columns; ++i)
        sql += ",?";
    auto statement = tables().prepare(sql + ")").value();
    for (int parameter = 1; parameter <= columns; ++parameter)
        from.bind_next(statement, parameter);
    (void)statement.run();
}

template <class Row>
void require_kept(const result<std::vector<Row>>& rows) {
    if (!rows) {
        require(rows.error().code == errc::corrupt, "a row that cannot be read is corrupt");
        require(!rows.error().detail.empty(), "a refusal says why");
        return;
    }
    for (const auto& row : *rows) {
        if constexpr (!std::is_same_v<Row, lease_row>) {
            if (!row.unreadable.empty()) continue;
        }
        require(
            lease_tables::write(tables(), copy, row, std::nullopt).has_value(),
            "a row that was read can be written"
        );
        const auto again = lease_tables::read(tables(), copy, key_of(row));
        require(again && *again && **again == lease_row(row), "a row that is written reads as itself");
    }
}

}  // namespace

void lease_tables(std::string_view columns) {
    auto undone_at_the_end = tables().begin(sqlite::transaction_kind::immediate).value();
    column_reader from(columns);
    insert(from, "shard", 11);
    insert(from, "worker", 12);
    insert(from, "group", 7);
    require_kept(lease_tables::list_shards(tables(), group));
    require_kept(lease_tables::list_workers(tables(), group));
    auto own = lease_tables::read(tables(), group, std::monostate{});
    require_kept(own.map([](std::optional<lease_row> row) {
        return row ? std::vector<lease_row>{*row} : std::vector<lease_row>{};
    }));
}

}  // namespace millrace::fuzz
