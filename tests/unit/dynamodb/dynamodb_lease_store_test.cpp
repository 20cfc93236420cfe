// What no server does on demand: the answers are given by hand.
#include "dynamodb_lease_store.hpp"

#include "scheduler.hpp"
#include "unit/aws/scripted_api.hpp"
#include "unit/remembered_log.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <gmock/gmock.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using test::scripted_api;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* right_keys =
    R"("AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
       "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}])";

std::string described(const std::string& status, const std::string& keys = right_keys) {
    return R"({"Table":{"TableStatus":")" + status + R"(",)" + keys + "}}";
}

struct DynamodbLeaseStore : testing::Test {
    DynamodbLeaseStore() {
        auto made = std::make_unique<scripted_api>();
        service = made.get();
        store = std::make_unique<dynamodb_lease_store>(
            home,
            std::move(made),
            dynamodb_lease_store_options{
                .where = {"leases", "eu-west-1", "", "table \"leases\""},
                .group = {"s", "g"},
                .request_timeout = 2s,
                .table_timeout = 5s}
        );
    }

    static shard_row shard(std::uint64_t v) {
        shard_row row;
        row.shard = shard_id{"a"};
        row.version = version{v};
        row.write_id = write_id{v + 70};
        return row;
    }
    static worker_row worker() {
        worker_row row;
        row.incarnation = incarnation{"i"};
        row.counter = version{1};
        row.write_id = write_id{71};
        return row;
    }
    void write(const lease_row& row, std::optional<version> expected = {}) {
        written.reset();
        store->write(row, expected, [this](result<void> outcome) {
            EXPECT_FALSE(written) << "completed twice";
            written = std::move(outcome);
        });
    }
    void list() {
        listed.reset();
        store->list_shards([this](result<std::vector<shard_row>> outcome) { listed = std::move(outcome); });
    }
    [[nodiscard]] const error& why_not_written() const { return written.value().error(); }

    /// The oldest request must be this one; what is answered reaches the store.
    void answer(const std::string& operation, const std::string& body) {
        expect_next(operation);
        service->reply(body);
        settle();
    }
    void refuse(const std::string& operation, const aws::api_failure& why) {
        expect_next(operation);
        service->fail(why);
        settle();
    }
    void expect_next(const std::string& operation) {
        ASSERT_GT(service->waiting(), 0U) << operation;
        EXPECT_EQ(service->next().operation, "DynamoDB_20120810." + operation);
    }
    void settle() { world.run_for(0ms); }

    static aws::api_failure not_found() {
        return scripted_api::failure(errc::not_found, "ResourceNotFoundException");
    }
    static aws::api_failure denied() {
        return scripted_api::failure(errc::permission_denied, "AccessDeniedException");
    }
    static aws::api_failure condition_failed(const std::string& body = "{}") {
        return scripted_api::failure(
            errc::conflict, "ConditionalCheckFailedException", retry_advice::never, false, "", body
        );
    }

    sim::scheduler world;
    sim::rng random{1};
    test::remembered_log log;
    sim::sim_host home{world, random, {}, &log};
    scripted_api* service{nullptr};
    std::unique_ptr<dynamodb_lease_store> store;
    std::optional<result<void>> written;
    std::optional<result<std::vector<shard_row>>> listed;
};

TEST_F(DynamodbLeaseStore, WritesOnceAndReadsAgainAtWill) {
    write(shard(1));
    EXPECT_FALSE(service->next().repeatable);
    EXPECT_FALSE(service->next().wait_when_throttled);
    EXPECT_EQ(service->next().timeout, 2s);
    answer("UpdateItem", "{}");
    EXPECT_TRUE(written.value());
    list();
    EXPECT_TRUE(service->next().repeatable);
    EXPECT_FALSE(service->next().wait_when_throttled);
    std::optional<result<void>> removed;
    store->remove(shard_id{"a"}, version{1}, [&](result<void> outcome) { removed = std::move(outcome); });
    answer("Query", R"({"Items":[]})");
    EXPECT_FALSE(service->next().repeatable);
    answer("DeleteItem", "{}");
    EXPECT_TRUE(removed.value());
}

TEST_F(DynamodbLeaseStore, AWriteWhoseReplyIsLostIsInDoubt) {
    write(shard(2), version{1});
    refuse("UpdateItem", scripted_api::failure(errc::unavailable, "", retry_advice::after_delay, true));
    EXPECT_EQ(why_not_written().code, errc::unavailable);
    EXPECT_TRUE(why_not_written().in_doubt);
    EXPECT_THAT(why_not_written().detail, HasSubstr("cannot write the leases in table \"leases\""));
}

TEST_F(DynamodbLeaseStore, AnErrorAfterTheEffectIsInDoubtAsTheClientSays) {
    write(shard(2), version{1});
    refuse(
        "UpdateItem",
        scripted_api::failure(errc::unavailable, "InternalServerError", retry_advice::after_delay, true)
    );
    EXPECT_TRUE(why_not_written().in_doubt);
}

TEST_F(DynamodbLeaseStore, ThrottlingIsToldAtOnceAndIsNotInDoubt) {
    write(shard(2), version{1});
    refuse(
        "UpdateItem",
        scripted_api::failure(
            errc::throttled, "ProvisionedThroughputExceededException", retry_advice::after_delay
        )
    );
    EXPECT_EQ(why_not_written().code, errc::throttled);
    EXPECT_FALSE(why_not_written().in_doubt);
    EXPECT_EQ(service->waiting(), 0U);
}

TEST_F(DynamodbLeaseStore, AFailedConditionIsAConflict) {
    for (const auto* body : {"{}", R"({"Item":{"write_id":{"N":"73"}}})"}) {
        write(shard(2), version{1});
        refuse("UpdateItem", condition_failed(body));
        EXPECT_EQ(why_not_written().code, errc::conflict);
        EXPECT_FALSE(why_not_written().in_doubt);
    }
}

// A connection that broke may have carried the request twice.
TEST_F(DynamodbLeaseStore, AWriteThatIsRefusedByItsOwnEffectHasSucceeded) {
    write(shard(2), version{1});
    refuse("UpdateItem", condition_failed(R"({"Item":{"version":{"N":"2"},"write_id":{"N":"72"}}})"));
    EXPECT_TRUE(written.value());
}

TEST_F(DynamodbLeaseStore, AListingIsAllPagesOrAnError) {
    const auto page = [](const std::string& name, bool more) {
        return R"({"Items":[{"pk":{"S":"shards/s/g"},"sk":{"S":"shard/)" + name +
               R"("},"version":{"N":"1"},"epoch":{"N":"0"},"write_id":{"N":"71"},"updated_at":{"N":"0"}}])" +
               (more ? R"(,"LastEvaluatedKey":{"pk":{"S":"shards/s/g"},"sk":{"S":"shard/)" + name + R"("}})"
                     : "") +
               "}";
    };
    list();
    EXPECT_EQ(service->next().body.find("ExclusiveStartKey"), std::string::npos);
    answer("Query", page("a", true));
    EXPECT_FALSE(listed);
    EXPECT_THAT(
        service->next().body,
        HasSubstr(R"("ExclusiveStartKey":{"pk":{"S":"shards/s/g"},"sk":{"S":"shard/a"}})")
    );
    answer("Query", page("b", false));
    ASSERT_TRUE(listed && *listed);
    ASSERT_EQ((*listed)->size(), 2U);
    EXPECT_EQ((**listed)[1].shard, shard_id{"b"});

    list();
    answer("Query", page("a", true));
    refuse("Query", scripted_api::failure(errc::unavailable, "", retry_advice::after_delay));
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed->error().code, errc::unavailable);
    EXPECT_THAT(listed->error().detail, HasSubstr("cannot read the leases"));
}

TEST_F(DynamodbLeaseStore, MakesAMissingTableAndSendsTheRequestAgain) {
    write(shard(1));
    list();
    refuse("UpdateItem", not_found());
    refuse("Query", not_found());
    refuse("DescribeTable", not_found());
    EXPECT_EQ(service->waiting(), 1U) << "both wait for one table";
    answer("CreateTable", "{}");
    answer("DescribeTable", described("CREATING"));
    EXPECT_EQ(service->waiting(), 0U);
    world.run_for(200ms);
    refuse("DescribeTable", not_found());  // what is new does not show at once
    world.run_for(200ms);
    answer("DescribeTable", described("ACTIVE"));
    answer("UpdateItem", "{}");
    answer("Query", R"({"Items":[]})");
    EXPECT_TRUE(written.value());
    EXPECT_TRUE(listed.value());
    EXPECT_EQ(log.count("state.table_created"), 1U);
}

TEST_F(DynamodbLeaseStore, WaitsForATableThatAnotherWorkerMakes) {
    write(shard(1));
    refuse("UpdateItem", not_found());
    refuse("DescribeTable", not_found());
    refuse("CreateTable", scripted_api::failure(errc::already_exists, "ResourceInUseException"));
    answer("DescribeTable", described("ACTIVE"));
    answer("UpdateItem", "{}");
    EXPECT_TRUE(written.value());
    EXPECT_EQ(log.count("state.table_created"), 0U);
}

TEST_F(DynamodbLeaseStore, ThrottledMakingOfATableIsTriedAgain) {
    write(shard(1));
    refuse("UpdateItem", not_found());
    refuse("DescribeTable", not_found());
    refuse(
        "CreateTable",
        scripted_api::failure(errc::throttled, "LimitExceededException", retry_advice::after_delay)
    );
    world.run_for(200ms);
    refuse("DescribeTable", not_found());
    answer("CreateTable", "{}");
    answer("DescribeTable", described("ACTIVE"));
    answer("UpdateItem", "{}");
    EXPECT_TRUE(written.value());
}

TEST_F(DynamodbLeaseStore, GivesUpOnATableThatDoesNotBecomeActive) {
    write(shard(1));
    refuse("UpdateItem", not_found());
    for (int i = 0; i < 100 && !written; ++i) {
        answer("DescribeTable", described("CREATING"));
        world.run_for(200ms);
    }
    ASSERT_TRUE(written);
    EXPECT_EQ(why_not_written().code, errc::unavailable);
    EXPECT_EQ(why_not_written().retry, retry_advice::after_delay);
    EXPECT_THAT(why_not_written().detail, HasSubstr("not ready within 5 s"));
    EXPECT_FALSE(why_not_written().in_doubt);
}

TEST_F(DynamodbLeaseStore, ATableThatIsGoneAgainAndAgainIsNotMadeForEver) {
    write(shard(1));
    for (int i = 0; i < 2; ++i) {
        refuse("UpdateItem", not_found());
        answer("DescribeTable", described("ACTIVE"));
    }
    refuse("UpdateItem", not_found());
    ASSERT_TRUE(written);
    EXPECT_EQ(why_not_written().code, errc::not_found);
}

TEST_F(DynamodbLeaseStore, ATableThatItHasUsedIsNotMadeAnew) {
    write(shard(1));
    answer("UpdateItem", "{}");
    ASSERT_TRUE(written->has_value());
    write(shard(2), version{1});
    refuse("UpdateItem", not_found());
    EXPECT_EQ(why_not_written().code, errc::not_found);
    EXPECT_THAT(why_not_written().detail, HasSubstr("to begin anew instead, stop all workers"));
}

TEST_F(DynamodbLeaseStore, ShowsTheCommandToWhoMayNotMakeTheTable) {
    write(shard(1));
    refuse("UpdateItem", not_found());
    refuse("DescribeTable", not_found());
    refuse("CreateTable", denied());
    EXPECT_EQ(why_not_written().code, errc::permission_denied);
    EXPECT_THAT(
        why_not_written().detail,
        AllOf(
            HasSubstr("allow dynamodb:CreateTable"),
            HasSubstr("aws dynamodb create-table --region eu-west-1 --table-name leases --billing-mode "
                      "PAY_PER_REQUEST --attribute-definitions AttributeName=pk,AttributeType=S "
                      "AttributeName=sk,AttributeType=S --key-schema AttributeName=pk,KeyType=HASH "
                      "AttributeName=sk,KeyType=RANGE")
        )
    );
}

TEST_F(DynamodbLeaseStore, SaysWhichActionIsNotAllowed) {
    write(shard(1));
    refuse("UpdateItem", denied());
    EXPECT_EQ(why_not_written().code, errc::permission_denied);
    EXPECT_THAT(why_not_written().detail, HasSubstr("allow dynamodb:UpdateItem"));
    list();
    refuse("Query", denied());
    EXPECT_THAT(listed->error().detail, HasSubstr("allow dynamodb:Query"));
}

TEST_F(DynamodbLeaseStore, TellsThatATableBelongsToSomethingElse) {
    const auto wrong =
        R"("AttributeDefinitions":[{"AttributeName":"leaseKey","AttributeType":"S"}],
           "KeySchema":[{"AttributeName":"leaseKey","KeyType":"HASH"}])";
    list();
    refuse(
        "Query",
        scripted_api::failure(
            errc::invalid_argument,
            "ValidationException",
            retry_advice::never,
            false,
            "Query condition missed key schema element: leaseKey"
        )
    );
    answer("DescribeTable", described("ACTIVE", wrong));
    ASSERT_TRUE(listed);
    EXPECT_EQ(listed->error().code, errc::invalid_config);
    EXPECT_THAT(
        listed->error().detail, AllOf(HasSubstr("has the key leaseKey (S)"), HasSubstr("need pk (S), sk (S)"))
    );
}

TEST_F(DynamodbLeaseStore, KeepsTheServicesWordsWhenTheTableIsRightOrMayNotBeSeen) {
    const auto invalid = scripted_api::failure(
        errc::invalid_argument, "ValidationException", retry_advice::never, false, "Item size has exceeded"
    );
    for (const bool seen : {true, false}) {
        write(shard(1));
        refuse("UpdateItem", invalid);
        seen ? answer("DescribeTable", described("ACTIVE")) : refuse("DescribeTable", denied());
        ASSERT_TRUE(written);
        EXPECT_EQ(why_not_written().code, errc::invalid_argument);
        EXPECT_THAT(why_not_written().detail, HasSubstr("Item size has exceeded"));
    }
}

TEST_F(DynamodbLeaseStore, HasRowsOfWorkersExpireFromTheFirstRegistrationOn) {
    write(worker());
    answer("UpdateItem", "{}");
    EXPECT_TRUE(written.value()) << "nobody waits for it";
    answer("DescribeTimeToLive", R"({"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}})");
    EXPECT_THAT(service->next().body, HasSubstr(R"("AttributeName":"expires_at")"));
    answer("UpdateTimeToLive", "{}");
    write(worker());
    answer("UpdateItem", "{}");
    EXPECT_EQ(service->waiting(), 0U) << "once";
    EXPECT_TRUE(log.lines.empty());
}

TEST_F(DynamodbLeaseStore, TwoWorkersThatSwitchExpiryOnAtOnceAreBothContent) {
    write(worker());
    answer("UpdateItem", "{}");
    answer("DescribeTimeToLive", R"({"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}})");
    refuse(
        "UpdateTimeToLive",
        scripted_api::failure(
            errc::invalid_argument,
            "ValidationException",
            retry_advice::never,
            false,
            "TimeToLive is already enabled"
        )
    );
    EXPECT_TRUE(log.lines.empty());
}

TEST_F(DynamodbLeaseStore, WarnsOnceWhereRowsCannotExpire) {
    write(worker());
    answer("UpdateItem", "{}");
    refuse("DescribeTimeToLive", denied());
    write(worker());
    answer("UpdateItem", "{}");
    ASSERT_EQ(log.count("state.no_expiry"), 1U);
    EXPECT_THAT(
        log.of("state.no_expiry").front(),
        AllOf(
            HasSubstr("dynamodb:UpdateTimeToLive"),
            HasSubstr("aws dynamodb update-time-to-live --region eu-west-1 --table-name leases")
        )
    );
}

TEST_F(DynamodbLeaseStore, LeavesATableAloneThatExpiresByAnotherAttribute) {
    write(worker());
    answer("UpdateItem", "{}");
    answer(
        "DescribeTimeToLive",
        R"({"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":"ttl"}})"
    );
    EXPECT_EQ(service->waiting(), 0U);
    EXPECT_THAT(log.of("state.no_expiry"), testing::ElementsAre(HasSubstr("by the attribute ttl")));
}

TEST_F(DynamodbLeaseStore, CountsExpiryByTheServicesClock) {
    list();
    service->reply(R"({"Items":[]})", home.wall() + 1h);
    settle();
    write(worker());
    const auto body = boost::json::parse(service->next().body).as_object();
    const auto end = std::chrono::floor<std::chrono::seconds>(home.wall() + 1h + 7 * 24h);
    EXPECT_THAT(
        service->next().body, HasSubstr("{\"N\":\"" + std::to_string(end.time_since_epoch().count()) + "\"}")
    );
}

TEST_F(DynamodbLeaseStore, AStoreThatIsGoneCompletesNothing) {
    write(shard(1));
    store.reset();
    settle();
    EXPECT_FALSE(written);
}

/// Answers each Query by an empty page that is not the last.
struct endless_table final : aws::api {
    void send(aws::api_request /*what*/, aws::api_done done) override {
        ++queries;
        done(aws::api_reply{R"({"Items":[],"LastEvaluatedKey":{"pk":{"S":"a"},"sk":{"S":"b"}}})", {}, {}});
    }
    std::size_t queries{0};
};

TEST(DynamodbGroups, EndOnPagesWithoutEnd) {
    endless_table table;
    const auto found = dynamodb_groups(table, {"leases", "eu-west-1", "", "table \"leases\""}, "s");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, errc::corrupt);
    EXPECT_THAT(found.error().detail, AllOf(HasSubstr("table \"leases\""), HasSubstr("check the endpoint")));
    EXPECT_EQ(table.queries, 10'000U);
}

}  // namespace
}  // namespace millrace
