#include "lease_columns.hpp"

#include "binary.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace millrace::postgres {
namespace {

using testing::HasSubstr;

std::string integer(std::int64_t value) {
    std::string out;
    append_integer(out, value);
    return out;
}

std::string time(std::int64_t millis) {
    std::string out;
    append_time(out, wall_time{milliseconds{millis}});
    return out;
}

std::string names(std::vector<std::optional<std::string_view>> values, type_id element = type_id::text) {
    std::string out;
    append_array(out, element, values);
    return out;
}

using columns = std::vector<std::optional<std::string>>;

columns shard() {
    return {
        "a",
        integer(4),
        names({"p", "q"}),
        "me",
        integer(3),
        integer(-1),
        "17",
        integer(2),
        time(5),
        time(6),
        time(7)};
}
columns worker() {
    return {
        "i-1",
        integer(4),
        "w",
        integer(-1),
        integer(9),
        integer(2),
        "h",
        "b",
        "n",
        integer(11),
        integer(12),
        time(7)};
}
columns group() {
    return {integer(4), integer(1), integer(-1), "s", "latest", time(5), integer(8)};
}

template <class Row>
result<Row> decode(result<Row> (*by)(row_values, std::string_view), const columns& from) {
    std::vector<std::optional<std::string_view>> values;
    for (const auto& one : from)
        values.push_back(one ? std::optional<std::string_view>(*one) : std::nullopt);
    return by(values, "postgresql://h/d");
}

/// With one column changed, the row is refused and the column is named.
template <class Row, std::size_t Count>
void expect_refused(
    result<Row> (*by)(row_values, std::string_view),
    const std::array<std::string_view, Count>& all,
    columns values,
    std::string_view column,
    std::optional<std::string> bad
) {
    const auto at = static_cast<std::size_t>(std::find(all.begin(), all.end(), column) - all.begin());
    values.at(at) = std::move(bad);
    const auto refused = decode(by, values);
    ASSERT_FALSE(refused) << column;
    EXPECT_EQ(refused.error().code, errc::corrupt);
    EXPECT_THAT(refused.error().detail, HasSubstr("column " + std::string(column) + " of"));
}

TEST(PostgresLeaseColumns, ReadsAShard) {
    const auto row = decode(decode_shard, shard()).value();
    EXPECT_EQ(row.shard, shard_id{"a"});
    EXPECT_EQ(row.version, version{4});
    EXPECT_EQ(row.parents, (std::vector{shard_id{"p"}, shard_id{"q"}}));
    EXPECT_EQ(row.owner, incarnation{"me"});
    EXPECT_EQ(row.epoch, epoch{3});
    EXPECT_EQ(row.write_id, write_id{~std::uint64_t{0}});
    ASSERT_TRUE(row.checkpoint);
    EXPECT_EQ(row.checkpoint->position.sequence.to_string(), "17");
    EXPECT_EQ(row.checkpoint->position.sub_sequence, 2U);
    EXPECT_EQ(row.checkpoint->arrival, wall_time{milliseconds{5}});
    EXPECT_EQ(row.finished_at, wall_time{milliseconds{6}});
    EXPECT_EQ(row.updated_at, wall_time{milliseconds{7}});
}

TEST(PostgresLeaseColumns, ReadsAShardWithoutCheckpoint) {
    auto values = shard();
    values[6] = values[7] = values[8] = values[9] = std::nullopt;
    const auto row = decode(decode_shard, values).value();
    EXPECT_EQ(row.checkpoint, std::nullopt);
    EXPECT_EQ(row.finished_at, std::nullopt);
}

TEST(PostgresLeaseColumns, NamesTheColumnOfAShardThatIsBroken) {
    const auto refused = [](std::string_view column, std::optional<std::string> bad) {
        expect_refused(decode_shard, shard_columns, shard(), column, std::move(bad));
    };
    refused("version", integer(-1));
    refused("version", std::nullopt);
    refused("parents", std::nullopt);
    refused("parents", "x");
    refused("parents", names({"p", std::nullopt}));
    refused("parents", names({"p"}, type_id::bytea));
    refused("epoch", integer(-5));
    refused("epoch", "123");
    refused("sequence", "1x");
    refused("sequence", "");
    refused("sequence", std::string(130, '9'));
    refused("sub_sequence", std::nullopt);
    refused("sub_sequence", integer(-1));
    refused("arrival", std::nullopt);
    refused("arrival", integer(std::numeric_limits<std::int64_t>::max()));
    refused("updated_at", std::nullopt);
}

TEST(PostgresLeaseColumns, RefusesHalfACheckpoint) {
    expect_refused(decode_shard, shard_columns, shard(), "sequence", "");
    auto values = shard();
    values[6] = std::nullopt;
    EXPECT_FALSE(decode(decode_shard, values));
}

TEST(PostgresLeaseColumns, ReadsAWorkerAndNamesWhatIsBroken) {
    const auto row = decode(decode_worker, worker()).value();
    EXPECT_EQ(row.incarnation, incarnation{"i-1"});
    EXPECT_EQ(row.worker, worker_id{"w"});
    EXPECT_EQ(row.counter, version{4});
    EXPECT_EQ(row.lease, nanoseconds{9});
    EXPECT_EQ(row.process, (process_identity{"h", "b", "n", 11, 12}));
    expect_refused(decode_worker, worker_columns, worker(), "counter", integer(-1));
    expect_refused(decode_worker, worker_columns, worker(), "lease_ns", integer(-1));
    expect_refused(decode_worker, worker_columns, worker(), "host", std::nullopt);
}

TEST(PostgresLeaseColumns, ReadsAGroupAndNamesWhatIsBroken) {
    const auto row = decode(decode_group, group()).value();
    EXPECT_EQ(row.version, version{4});
    EXPECT_EQ(row.start, start_policy::latest);
    EXPECT_EQ(row.start_at, wall_time{milliseconds{5}});
    EXPECT_EQ(row.epoch_floor, epoch{8});
    expect_refused(decode_group, group_columns, group(), "start", "newest");
    expect_refused(decode_group, group_columns, group(), "format", integer(std::int64_t{1} << 32));
    expect_refused(decode_group, group_columns, group(), "epoch_floor", integer(-1));
}

}  // namespace
}  // namespace millrace::postgres
