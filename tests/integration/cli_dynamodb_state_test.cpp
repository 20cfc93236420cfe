#include "aws_access.hpp"
#include "cli_state.hpp"
#include "dynamodb/requests.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"

#include <millrace/log.hpp>

#include <cstdlib>
#include <future>

namespace millrace::cli {
namespace {

/// A table of its own on dynalite, which takes any keys.
struct CliDynamodbState : CliState {
    CliDynamodbState()
        : CliState(
              "dynamodb://eu-west-1/" + support::unique_name("state") +
              "?endpoint=" + support::services().dynamodb_endpoint
          ) {
        ::setenv("AWS_ACCESS_KEY_ID", "123456789012", 1);
        ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    }
};

TEST_F(CliDynamodbState, ResumesWhereItWas) {
    resumes_where_it_was();
}

TEST_F(CliDynamodbState, IsSharedByWorkersAndTakenOverFromADeadOne) {
    is_shared_by_workers();
}

TEST_F(CliDynamodbState, ATableWhoseSortKeyIsANumberEndsAConsumerAtOnce) {
    const auto table = kept_in.substr(21, kept_in.find('?') - 21);
    std::promise<bool> made;
    const auto service = open_aws("dynamodb", "eu-west-1", support::services().dynamodb_endpoint, null_log());
    service->send(
        {aws::dynamodb::target_of("CreateTable"),
         aws::dynamodb::content_type,
         R"({"TableName":")" + table +
             R"(","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[)"
             R"({"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}],"KeySchema":)"
             R"([{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]})"},
        [&](const auto& reply) { made.set_value(reply.has_value()); }
    );
    ASSERT_TRUE(made.get_future().get());
    make_stream();
    for (const words& more : {words{}, words{"--idle-exit", "1h"}}) {
        const auto refused = millrace(of_group({"consume"}, more));
        EXPECT_EQ(refused.status, 1);
        EXPECT_THAT(refused.errors, AllOf(HasSubstr("pk (S), sk (N)"), HasSubstr(table)));
    }
}

TEST_F(CliDynamodbState, WhileItHangsFromTheStartReadyzSaysForWhatTheWorkerWaits) {
    make_stream();
    support::fault_proxy proxy(support::port_of(support::services().dynamodb_endpoint));
    proxy.hold();
    kept_in = kept_in.substr(0, kept_in.find("endpoint=")) +
              "endpoint=http://127.0.0.1:" + std::to_string(proxy.port());
    const auto worker = start(of_group({"consume"}, {"--admin", "127.0.0.1:0"}), "worker");
    ASSERT_TRUE(says("worker", "admin.listening"));
    const auto port = admin_port("worker");
    std::string all;  // behind the moment in which it has begun to listen and not yet to work
    EXPECT_TRUE(support::eventually(std::chrono::seconds{30}, [&] {
        const auto now = get(port, "/readyz");
        if (all.empty() && now.find("nothing has been heard") != std::string::npos) return false;
        all += now;
        EXPECT_THAT(now, testing::Not(HasSubstr("200 OK")));
        if (now.find("is not among those of its group yet") != std::string::npos) {
            EXPECT_THAT(get(port, "/status"), testing::Not(HasSubstr(R"("consumer_last_error":null)")));
        }
        return now.find(std::to_string(proxy.port())) != std::string::npos;
    })) << all;
    EXPECT_THAT(
        all,
        AllOf(
            HasSubstr("is not among those of its group yet"),
            testing::Not(HasSubstr("nothing has been heard"))
        )
    );
    proxy.release();
    EXPECT_TRUE(support::eventually(std::chrono::seconds{30}, [&] {
        return get(port, "/readyz").find("200 OK") != std::string::npos;
    }));
}

}  // namespace
}  // namespace millrace::cli
