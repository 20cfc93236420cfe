// `group import --from`: the tables of gosoline's kinsumer and harlow's kinesis-consumer, as those make them.
#include "aws_access.hpp"
#include "cli_fixture.hpp"
#include "dynamodb/requests.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <millrace/log.hpp>

#include <cstdlib>
#include <future>

#include <fmt/format.h>

namespace millrace::cli {
namespace {

/// A table in DynamoDB.
class foreign_table {
public:
    foreign_table() {
        ::setenv("AWS_ACCESS_KEY_ID", "123456789012", 1);
        ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
        service_ = open_aws("dynamodb", "eu-west-1", endpoint_, null_log());
    }
    void make(const std::string& sort_key, const std::string& partition_key = "namespace") {
        call("CreateTable", aws::dynamodb::create_table(name_, {partition_key, sort_key}));
        ASSERT_TRUE(support::eventually(std::chrono::seconds{10}, [&] {
            return call("DescribeTable", aws::dynamodb::describe_table(name_)).find("ACTIVE") !=
                   std::string::npos;
        }));
    }
    void put(const std::string& item) {
        call("PutItem", fmt::format(R"({{"TableName":"{}","Item":{}}})", name_, item));
    }
    [[nodiscard]] std::string url() const {
        return "dynamodb://eu-west-1/" + name_ + "?endpoint=" + endpoint_;
    }

private:
    std::string call(const std::string& operation, const std::string& body) {
        std::promise<std::string> answer;
        service_->send(
            {aws::dynamodb::target_of(operation), aws::dynamodb::content_type, body},
            [&](const tl::expected<aws::api_reply, aws::api_failure>& reply) {
                if (!reply) ADD_FAILURE() << operation << ": " << reply.error().why.detail;
                answer.set_value(reply ? reply->body : "");
            }
        );
        return answer.get_future().get();
    }

    const std::string name_ = support::unique_name("former");
    const std::string endpoint_ = support::services().dynamodb_endpoint;
    std::unique_ptr<aws::api> service_;
};

/// Three records in one shard, of which a former consumer had processed two.
struct CliImportFrom : Cli {
    void SetUp() override {
        make_stream();
        put_values(3);
    }
    [[nodiscard]] support::command_result import(const words& from) const {
        words command{"group", "import", "--stream", stream(), "--group", "g", "--state", state()};
        command.insert(command.end(), from.begin(), from.end());
        return millrace(command);
    }
    void expect_the_third_record_alone() const {
        const auto printed = ok(consume());
        EXPECT_THAT(printed, AllOf(HasSubstr("\"v2\""), testing::Not(HasSubstr("\"v1\""))));
    }
};

TEST_F(CliImportFrom, TakesThePositionsOfAKinsumer) {
    foreign_table table;
    table.make("resource");
    table.put(
        R"({"namespace":{"S":"checkpoint:shop-billing:orders"},"resource":{"S":"shardId-000000000000"},
            "sequenceNumber":{"S":"2"},"finishedAt":{"NULL":true},"updatedAt":{"S":"2026-01-02T03:04:05Z"},
            "ttl":{"N":"1900000000"},"owningClientId":{"S":"c"},"lastShardIterator":{"S":""}})"
    );
    table.put(
        R"({"namespace":{"S":"checkpoint:other:orders"},"resource":{"S":"shardId-000000000000"},
            "sequenceNumber":{"S":"3"}})"
    );
    const words from{"--from", table.url(), "--kept-by", "gosoline", "--app"};
    auto wrong = from;
    wrong.emplace_back("billing");
    const auto refused = import(wrong);
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, HasSubstr("no row under \"checkpoint:billing:orders\""));
    auto right = from;
    right.emplace_back("shop-billing");
    const auto done = import(right);
    EXPECT_EQ(done.status, 0) << done.errors;
    EXPECT_THAT(done.output, HasSubstr("1 shard written"));
    expect_the_third_record_alone();
}

TEST_F(CliImportFrom, TakesThePositionsOfAKinesisConsumerInDynamodb) {
    foreign_table table;
    table.make("shard_id");
    table.put(
        R"({"namespace":{"S":"billing-orders"},"shard_id":{"S":"shardId-000000000000"},
            "sequence_number":{"S":"2"}})"
    );
    const auto done = import({"--from", table.url(), "--kept-by", "harlow", "--app", "billing"});
    EXPECT_EQ(done.status, 0) << done.errors;
    expect_the_third_record_alone();
}

TEST_F(CliImportFrom, TakesThePositionsOfAKinesisConsumerInPostgresql) {
    const auto& server = support::services().postgres;
    support::sql_connection sql(server);
    const auto table = support::unique_name("checkpoints");
    sql.execute(fmt::format(
        "CREATE TABLE \"{0}\" (namespace text NOT NULL, shard_id text NOT NULL, sequence_number numeric NOT "
        "NULL, PRIMARY KEY (namespace, shard_id)); INSERT INTO \"{0}\" VALUES ('billing-orders', "
        "'shardId-000000000000', 2), ('other-orders', 'shardId-000000000000', 3)",
        table
    ));
    const auto from = server + (server.find('?') == std::string::npos ? "?" : "&") + "table=" + table;
    const auto done = import({"--from", from, "--kept-by", "harlow", "--app", "billing"});
    EXPECT_EQ(done.status, 0) << done.errors;
    expect_the_third_record_alone();
    sql.execute("DROP TABLE \"" + table + "\"");
    const auto gone = import({"--from", from, "--kept-by", "harlow", "--app", "billing"});
    EXPECT_EQ(gone.status, 1);
    EXPECT_THAT(gone.errors, HasSubstr(table));
}

TEST_F(CliImportFrom, WhatIsMissingOrTooMuchIsNamedTogether) {
    const auto nothing = import({});
    EXPECT_EQ(nothing.status, 2);
    EXPECT_THAT(nothing.errors, HasSubstr("there are no positions"));
    const auto half = import({"--from", "postgresql://h/d", "f.ndjson"});
    EXPECT_EQ(half.status, 2);
    EXPECT_THAT(
        half.errors,
        AllOf(
            HasSubstr("FILE and --from are both given"),
            HasSubstr("names no table"),
            HasSubstr("--kept-by is missing"),
            HasSubstr("--app is missing")
        )
    );
    const auto alone = import({"--app", "billing", "f.ndjson"});
    EXPECT_EQ(alone.status, 2);
    EXPECT_THAT(alone.errors, HasSubstr("--app is of no use without --from"));
}

TEST_F(CliImportFrom, ATableOfAnotherLayoutIsNamedAsThat) {
    foreign_table table;
    table.make("resource", "pk");
    const auto refused = import({"--from", table.url(), "--kept-by", "gosoline", "--app", "shop-billing"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, HasSubstr("is no table of gosoline's consumer"));
}

}  // namespace
}  // namespace millrace::cli
