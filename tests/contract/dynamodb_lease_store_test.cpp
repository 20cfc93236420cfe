#include "dynamodb_lease_store.hpp"

#include "contract/dynamodb_fixture.hpp"
#include "contract/loop_host.hpp"
#include "dynamodb/replies.hpp"
#include "lease_items.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"
#include "support/process.hpp"
#include "unit/remembered_log.hpp"

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using aws::dynamodb::item;
using aws::dynamodb::number;
using aws::dynamodb::value;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Each runs against dynalite, which keeps the item of a failed condition to itself, and against moto.
struct DynamodbServers : testing::TestWithParam<const char*> {
    [[nodiscard]] std::string endpoint() const {
        const auto& shared = support::services();
        return std::string(GetParam()) == "moto" ? shared.moto_endpoint : shared.dynamodb_endpoint;
    }
    std::unique_ptr<dynamodb_lease_store> make(
        host& on, const std::string& at, milliseconds timeout = 10s, const group_key& group = {"s", "g"}
    ) {
        auto options = test::dynamodb_options(table, at, group);
        options.request_timeout = timeout;
        return std::make_unique<dynamodb_lease_store>(on, test::dynamodb_client(at), std::move(options));
    }
    result<void> write(lease_store& to, lease_row row, std::optional<version> expected = {}) {
        return home.await<void>([&](auto done) { to.write(std::move(row), expected, std::move(done)); });
    }
    result<void> remove(lease_store& from, lease_key key, version expected) {
        return home.await<void>([&](auto done) { from.remove(std::move(key), expected, std::move(done)); });
    }
    std::optional<lease_row> read(lease_store& from, const lease_key& key) {
        auto found =
            home.await<std::optional<lease_row>>([&](auto done) { from.read(key, std::move(done)); });
        EXPECT_TRUE(found) << found.error().detail;
        return found.value_or(std::nullopt);
    }
    bool reaches(lease_store& from, const lease_key& key) {
        return home.await<std::optional<lease_row>>([&](auto done) { from.read(key, std::move(done)); }
        ).has_value();
    }
    std::string call(std::string_view operation, std::string body) const {
        auto reply = test::dynamodb_call(*test::dynamodb_client(endpoint()), operation, std::move(body));
        EXPECT_TRUE(reply) << reply.error().why.detail;
        return reply ? reply->body : "";
    }

    /// One of each kind that has its own update and its own key.
    static std::vector<std::function<lease_row(std::uint64_t v, std::uint64_t id)>> kinds() {
        return {
            [](std::uint64_t v, std::uint64_t id) {
                shard_row row;
                row.shard = shard_id{"a"};
                row.version = version{v};
                row.write_id = write_id{id};
                return row;
            },
            [](std::uint64_t v, std::uint64_t id) {
                worker_row row;
                row.incarnation = incarnation{"i"};
                row.counter = version{v};
                row.write_id = write_id{id};
                return row;
            },
            [](std::uint64_t v, std::uint64_t id) {
                group_row row;
                row.version = version{v};
                row.write_id = write_id{id};
                return row;
            }};
    }
    static write_id id_of(const lease_row& row) {
        return std::visit([](const auto& r) { return r.write_id; }, row);
    }

    test::loop_host home;
    std::string table = support::unique_name("lease");
};

TEST_P(DynamodbServers, SeveralWorkersMakeTheTableAtOnce) {
    std::vector<std::thread> starters;
    for (int i = 0; i < 6; ++i) {
        starters.emplace_back([&, i] {
            test::loop_host mine;
            const auto store = make(mine, endpoint());
            shard_row row;
            row.shard = shard_id{std::to_string(i)};
            const auto done =
                mine.await<void>([&](auto d) { store->write(row, std::nullopt, std::move(d)); });
            EXPECT_TRUE(done) << done.error().detail;
        });
    }
    for (auto& starter : starters)
        starter.join();
    const auto store = make(home, endpoint());
    const auto all =
        home.await<std::vector<shard_row>>([&](auto done) { store->list_shards(std::move(done)); });
    EXPECT_EQ(all.value().size(), 6U);
    const auto described = call("DescribeTable", aws::dynamodb::describe_table(table));
    EXPECT_THAT(described, HasSubstr("PAY_PER_REQUEST"));
}

TEST_P(DynamodbServers, AttributesOfALaterVersionOutliveAWrite) {
    const auto store = make(home, endpoint());
    for (const auto& row : kinds()) {
        ASSERT_TRUE(write(*store, row(1, 71)));
        const auto key = lease_items::key_of({"s", "g"}, key_of(row(1, 71)));
        call(
            "UpdateItem",
            aws::dynamodb::update_item(
                table,
                {key,
                 {{"later", value{"kept"}}},
                 {},
                 lease_items::has_version(key_of(row(1, 71)), version{1})}
            )
        );
        ASSERT_TRUE(write(*store, row(2, 72), version{1}));
        EXPECT_EQ(read(*store, key_of(row(2, 72))), row(2, 72));
        const auto found = aws::dynamodb::read_get_item(call("GetItem", aws::dynamodb::get_item(table, key)));
        EXPECT_EQ((*found)->at("later"), value{"kept"});
    }
}

TEST_P(DynamodbServers, ListsAShardWhoseRowCannotBeReadByItsNameAndTheOthersAsTheyAre) {
    const auto store = make(home, endpoint());
    shard_row other;
    for (const auto* name : {"a", "b"}) {
        other.shard = shard_id{name};
        other.version = version{1};
        ASSERT_TRUE(write(*store, other));
    }
    const lease_key damaged = shard_id{"a"};
    call(
        "UpdateItem",
        aws::dynamodb::update_item(
            table,
            {lease_items::key_of({"s", "g"}, damaged),
             {{"epoch", value{"many"}}},
             {},
             lease_items::has_version(damaged, version{1})}
        )
    );
    const auto listed =
        home.await<std::vector<shard_row>>([&](auto done) { store->list_shards(std::move(done)); });
    ASSERT_TRUE(listed) << listed.error().detail;
    ASSERT_EQ(listed->size(), 2U);
    EXPECT_EQ(listed->front().shard, shard_id{"a"});
    EXPECT_THAT(listed->front().unreadable, HasSubstr("attribute epoch of the row \"shard/a\""));
    EXPECT_EQ(listed->back(), other);
}

TEST_P(DynamodbServers, ListsAWorkerWhoseItemCannotBeReadAndForeignItemsByWhatIsKnownOfThem) {
    const auto store = make(home, endpoint());
    worker_row row{.worker = worker_id{"w"}, .counter = version{1}, .lease = 10s};
    for (const auto* name : {"a", "b"}) {
        row.incarnation = incarnation{name};
        ASSERT_TRUE(write(*store, row));
    }
    const lease_key damaged = incarnation{"a"};
    call(
        "UpdateItem",
        aws::dynamodb::update_item(
            table,
            {lease_items::key_of({"s", "g"}, damaged),
             {{"counter", value{"x"}}},
             {},
             lease_items::has_version(damaged, version{1})}
        )
    );
    for (const auto& in : {lease_items::workers_of({"s", "g"}), lease_items::shards_of({"s", "g"})}) {
        call(
            "UpdateItem",
            aws::dynamodb::update_item(
                table,
                {{{"pk", value{in}}, {"sk", value{"zzz"}}},
                 {{"note", value{"mine"}}},
                 {},
                 aws::dynamodb::absent{"pk"}}
            )
        );
    }
    const auto listed =
        home.await<std::vector<worker_row>>([&](auto done) { store->list_workers(std::move(done)); });
    ASSERT_TRUE(listed) << listed.error().detail;
    ASSERT_EQ(listed->size(), 3U);
    EXPECT_EQ(listed->at(0).incarnation, incarnation{"a"});
    EXPECT_EQ(listed->at(0).counter, version{0});
    EXPECT_EQ(listed->at(0).lease, nanoseconds{10s});
    EXPECT_THAT(listed->at(0).unreadable, HasSubstr("attribute counter of the row \"worker/a\""));
    EXPECT_EQ(listed->at(1), row);
    EXPECT_EQ(listed->at(2).incarnation, incarnation{});
    EXPECT_THAT(listed->at(2).unreadable, HasSubstr("the row \"zzz\""));
    const auto shards =
        home.await<std::vector<shard_row>>([&](auto done) { store->list_shards(std::move(done)); });
    ASSERT_TRUE(shards) << shards.error().detail;
    ASSERT_EQ(shards->size(), 1U);
    EXPECT_EQ(shards->front().shard, foreign_row("zzz"));
    EXPECT_THAT(shards->front().unreadable, HasSubstr("the row \"zzz\""));
}

TEST_P(DynamodbServers, GroupsOfLikeNamesShareNothing) {
    const auto one = make(home, endpoint(), 10s, {"a-b", "c"});
    const auto other = make(home, endpoint(), 10s, {"a", "b-c"});
    for (const auto& row : kinds()) {
        ASSERT_TRUE(write(*one, row(1, 71)));
        EXPECT_EQ(read(*other, key_of(row(1, 71))), std::nullopt);
        ASSERT_TRUE(write(*other, row(1, 72)));
        EXPECT_EQ(id_of(*read(*one, key_of(row(1, 71)))), write_id{71});
    }
    const auto client = test::dynamodb_client(endpoint());
    const lease_table_name where{table, "us-east-1", endpoint(), table};
    EXPECT_THAT(dynamodb_groups(*client, where, "a-b").value(), ElementsAre("c"));
    EXPECT_THAT(dynamodb_groups(*client, where, "a").value(), ElementsAre("b-c"));
    EXPECT_TRUE(dynamodb_groups(*client, where, "b").value().empty());
    EXPECT_EQ(
        dynamodb_groups(*client, {"no_such_table", "us-east-1", endpoint(), "t"}, "a").error().code,
        errc::not_found
    );
}

// A client may send a request twice when the connection it was on breaks: then the write is refused by its
// own effect, which the returned item tells, or a re-read.
TEST_P(DynamodbServers, AWriteWhoseReplyIsLostIsFoundByItsId) {
    support::fault_proxy proxy(support::port_of(endpoint()));
    const auto store = make(home, "http://127.0.0.1:" + std::to_string(proxy.port()));
    const auto direct = make(home, endpoint());
    const auto settled = [&](const result<void>& outcome) {
        return outcome.has_value() || outcome.error().in_doubt || outcome.error().code == errc::conflict;
    };
    for (const auto& row : kinds()) {
        const auto key = key_of(row(1, 71));
        EXPECT_EQ(read(*store, key), std::nullopt);  // makes the table, and opens the connection
        proxy.lose_reply("UpdateItem");
        const auto created = write(*store, row(1, 71));
        EXPECT_TRUE(settled(created)) << created.error().detail;
        ASSERT_TRUE(proxy.lost_reply());
        EXPECT_EQ(read(*direct, key), row(1, 71));

        proxy.lose_reply("UpdateItem");
        const auto replaced = write(*store, row(2, 72), version{1});
        EXPECT_TRUE(settled(replaced)) << replaced.error().detail;
        ASSERT_TRUE(proxy.lost_reply());
        EXPECT_EQ(read(*direct, key), row(2, 72));

        proxy.lose_reply("DeleteItem");
        const auto removed = remove(*store, key, version{2});
        EXPECT_TRUE(settled(removed)) << removed.error().detail;
        ASSERT_TRUE(proxy.lost_reply());
        EXPECT_EQ(read(*direct, key), std::nullopt);
    }
}

TEST_P(DynamodbServers, AWriteThatLandsLateIsRefused) {
    const auto direct = make(home, endpoint());
    for (const auto& row : kinds()) {
        const auto key = key_of(row(1, 71));
        support::fault_proxy proxy(support::port_of(endpoint()));
        const auto slow = make(home, "http://127.0.0.1:" + std::to_string(proxy.port()), 300ms);
        const auto late = [&](const std::function<result<void>()>& change,
                              const std::function<void()>& meanwhile) {
            ASSERT_TRUE(support::eventually(20s, [&] { return reaches(*slow, key); })) << "within its 300 ms";
            proxy.hold();
            const auto outcome = change();
            ASSERT_FALSE(outcome);
            EXPECT_TRUE(outcome.error().in_doubt) << outcome.error().detail;
            meanwhile();
            proxy.release();
            home.run_for(200ms);
        };
        late([&] { return write(*slow, row(1, 90)); }, [&] { ASSERT_TRUE(write(*direct, row(1, 71))); });
        EXPECT_EQ(read(*direct, key), row(1, 71));
        late(
            [&] { return write(*slow, row(2, 91), version{1}); },
            [&] { ASSERT_TRUE(write(*direct, row(2, 72), version{1})); }
        );
        EXPECT_EQ(read(*direct, key), row(2, 72));
        late(
            [&] { return remove(*slow, key, version{2}); },
            [&] { ASSERT_TRUE(write(*direct, row(3, 73), version{2})); }
        );
        EXPECT_EQ(read(*direct, key), row(3, 73));
        ASSERT_TRUE(remove(*direct, key, version{3}));
        late([&] { return write(*slow, row(4, 92), version{3}); }, [] {});
        EXPECT_EQ(read(*direct, key), std::nullopt) << "an ended session comes back";
    }
}

TEST_P(DynamodbServers, AListingTakesAllPages) {
    const auto store = make(home, endpoint());
    shard_row big;
    big.parents = {shard_id{std::string(350'000, 'x')}};
    for (int i = 0; i < 7; ++i) {
        big.shard = shard_id{std::to_string(i)};
        ASSERT_TRUE(write(*store, big));
    }
    const auto all =
        home.await<std::vector<shard_row>>([&](auto done) { store->list_shards(std::move(done)); });
    ASSERT_TRUE(all) << all.error().detail;
    EXPECT_EQ(all->size(), 7U);
    EXPECT_EQ(all->back(), big);
}

TEST_P(DynamodbServers, ATableOfSomethingElseIsTold) {
    call("CreateTable", aws::dynamodb::create_table(table, {"leaseKey", "range"}));
    const auto store = make(home, endpoint());
    const auto refused = write(*store, shard_row{});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::invalid_config);
    EXPECT_THAT(
        refused.error().detail, AllOf(HasSubstr("leaseKey (S), range (S)"), HasSubstr("pk (S), sk (S)"))
    );
    const auto unlisted =
        home.await<std::vector<worker_row>>([&](auto done) { store->list_workers(std::move(done)); });
    ASSERT_FALSE(unlisted);
    EXPECT_EQ(unlisted.error().code, errc::invalid_config);
}

INSTANTIATE_TEST_SUITE_P(
    Servers,
    DynamodbServers,
    testing::Values("dynalite", "moto"),
    [](const auto& which) { return which.param; }
);

struct DynamodbOfNumbers : testing::Test {
    const std::string& endpoint = support::services().dynamodb_endpoint;
    std::string table = support::unique_name("lease");
    test::loop_host home;
};

/// moto takes a string for a number.
TEST_F(DynamodbOfNumbers, ATableWhoseSortKeyIsANumberIsTold) {
    const auto made = test::dynamodb_call(
        *test::dynamodb_client(endpoint),
        "CreateTable",
        R"({"TableName":")" + table +
            R"(","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[)"
            R"({"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}],)"
            R"("KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]})"
    );
    ASSERT_TRUE(made) << made.error().why.detail;
    dynamodb_lease_store store(
        home, test::dynamodb_client(endpoint), test::dynamodb_options(table, endpoint)
    );
    const auto refused =
        home.await<void>([&](auto done) { store.write(shard_row{}, std::nullopt, std::move(done)); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::invalid_config) << refused.error().detail;
    EXPECT_THAT(refused.error().detail, AllOf(HasSubstr("pk (S), sk (N)"), HasSubstr("pk (S), sk (S)")));
    const auto unread = home.await<std::optional<lease_row>>([&](auto done) {
        store.read(std::monostate{}, std::move(done));
    });
    ASSERT_FALSE(unread);
    EXPECT_EQ(unread.error().code, errc::invalid_config) << unread.error().detail;
}

struct logging_host final : host {
    [[nodiscard]] mono_time now() const override { return inner.now(); }
    [[nodiscard]] wall_time wall() const override { return inner.wall(); }
    [[nodiscard]] std::uint64_t random() override { return inner.random(); }
    timer call_at(mono_time when, std::function<void()> what) override {
        return inner.call_at(when, std::move(what));
    }
    void cancel(timer which) override { inner.cancel(which); }
    void post(std::function<void()> what) override { inner.post(std::move(what)); }
    [[nodiscard]] log_sink& log() override { return lines; }

    test::loop_host inner;
    test::remembered_log lines;
};

worker_row registered() {
    worker_row row;
    row.incarnation = incarnation{"i"};
    row.counter = version{1};
    return row;
}

TEST(DynamodbExpiry, RowsOfWorkersExpireWhereTheServiceCanDoIt) {
    const auto& endpoint = support::services().moto_endpoint;
    const auto table = support::unique_name("lease");
    logging_host home;
    dynamodb_lease_store store(
        home, test::dynamodb_client(endpoint), test::dynamodb_options(table, endpoint)
    );
    ASSERT_TRUE(home.inner.await<void>([&](auto done) { store.write(registered(), std::nullopt, done); }));
    const auto by = [&] {
        const auto reply = test::dynamodb_call(
            *test::dynamodb_client(endpoint),
            "DescribeTimeToLive",
            aws::dynamodb::describe_time_to_live(table)
        );
        return aws::dynamodb::read_describe_time_to_live(reply.value().body).value();
    };
    EXPECT_TRUE(home.inner.run_until([&] { return by() == "expires_at"; }));
    EXPECT_EQ(home.lines.count("state.no_expiry"), 0U);
}

TEST(DynamodbExpiry, ItsAbsenceIsWarnedOfOnceAndStopsNothing) {
    const auto& endpoint = support::services().dynamodb_endpoint;
    logging_host home;
    dynamodb_lease_store store(
        home, test::dynamodb_client(endpoint), test::dynamodb_options(support::unique_name("lease"), endpoint)
    );
    ASSERT_TRUE(home.inner.await<void>([&](auto done) { store.write(registered(), std::nullopt, done); }));
    EXPECT_TRUE(home.inner.run_until([&] { return home.lines.count("state.no_expiry") == 1; }));
    auto next = registered();
    next.counter = version{2};
    EXPECT_TRUE(home.inner.await<void>([&](auto done) { store.write(next, version{1}, done); }));
    home.inner.run_for(100ms);
    EXPECT_EQ(home.lines.count("state.no_expiry"), 1U);
}

TEST(DynamodbOutage, AStoreGoesOnAfterTheServiceWasKilledAndLosesNothing) {
    support::private_dynamodb server({"--createTableMs", "300"});
    test::loop_host home;
    auto options = test::dynamodb_options("leases", server.endpoint());
    options.request_timeout = 1s;
    dynamodb_lease_store store(home, test::dynamodb_client(server.endpoint()), options);
    ASSERT_TRUE(home.await<void>([&](auto done) { store.write(registered(), std::nullopt, done); }))
        << "a table takes its time";
    server.kill();
    const auto met = home.await<std::vector<worker_row>>([&](auto done) { store.list_workers(done); });
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, errc::unavailable);
    server.start();
    const auto again = home.await<std::vector<worker_row>>([&](auto done) { store.list_workers(done); });
    ASSERT_TRUE(again) << again.error().detail;
    ASSERT_EQ(again->size(), 1U);
    EXPECT_EQ(again->front().counter, version{1});
}

}  // namespace
}  // namespace millrace
