#include "local_admin.hpp"
#include "local_read.hpp"
#include "support/temporary_folder.hpp"
#include "targets.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace millrace::fuzz {

namespace {

constexpr std::uint64_t records = 5;

/// A stream of five records in one shard, and a connection to it.
struct small_stream {
    small_stream() {
        auto admin = local_admin::open_or_create(file, {}).value();
        require(admin.create_stream("orders", 1).has_value(), "a stream can be made");
        admin.put("orders", std::vector<event>(records, {.topic = "orders", .key = "k", .value = "v"}))
            .value();
    }

    support::temporary_folder directory;
    std::string file{directory.file("streams.db")};
    std::optional<sqlite::database> db;
};

sqlite::database& stream() {
    static small_stream made;
    if (!made.db)
        made.db.emplace(sqlite::database::open(made.file, {.sync = sqlite::durability::normal}).value());
    return *made.db;
}

bool is_number(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

void local_cursor(std::string_view text) {
    const shard_id shard{"shardId-000000000000"};
    const auto reply = local::read_records(stream(), "orders", shard, read_cursor{std::string(text)}, {});
    if (!reply) {
        require(!reply.error().detail.empty(), "a refusal says why");
        return;
    }
    require(is_number(text), "a cursor is a decimal number");
    std::uint64_t from = 0;
    (void)std::from_chars(text.data(), text.data() + text.size(), from);
    const auto expected = from > records ? 0 : records - std::max<std::uint64_t>(from, 1) + 1;
    require(reply->records->records().size() == expected, "a cursor is the first number to be read");
    require(reply->next && is_number(reply->next->value()), "an open shard goes on");
}

}  // namespace millrace::fuzz
