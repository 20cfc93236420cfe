// The chain of credentials over real HTTP, files and programs.

#include "credentials/key_chain.hpp"
#include "support/raw_http_server.hpp"
#include "support/temporary_folder.hpp"
#include "unit/remembered_log.hpp"

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;
using support::http_answer;
using support::raw_answer;
using support::raw_http_server;
using support::seen_request;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using clock = std::chrono::steady_clock;

std::string moment_in(std::chrono::seconds span) {
    const auto moment = std::chrono::system_clock::now() + span;
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(moment)));
}

std::string document(const std::string& name, std::chrono::seconds lasts) {
    return fmt::format(
        R"({{"Code":"Success","AccessKeyId":"{}","SecretAccessKey":"S3CR3T","Token":"T0K3N","Expiration":"{}"}})",
        name,
        moment_in(lasts)
    );
}

std::string sts_document(const std::string& name, std::chrono::seconds lasts) {
    return fmt::format(
        "<R><Credentials><AccessKeyId>{}</AccessKeyId><SecretAccessKey>S3CR3T</"
        "SecretAccessKey><SessionToken>T0K3N"
        "</SessionToken><Expiration>{}</Expiration></Credentials></R>",
        name,
        moment_in(lasts)
    );
}

/// The log is written by the chain's thread.
class locked_log final : public log_sink {
public:
    [[nodiscard]] bool enabled(log_level level) const noexcept override { return log_.enabled(level); }
    void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override {
        const std::lock_guard lock(mutex_);
        log_.write(level, event, fields);
    }
    [[nodiscard]] std::string text() {
        const std::lock_guard lock(mutex_);
        return fmt::format("{}", fmt::join(log_.lines, "\n"));
    }

private:
    std::mutex mutex_;
    test::remembered_log log_;
};

struct AwsCredentials : testing::Test {
    AwsCredentials() {
        variables["AWS_EC2_METADATA_DISABLED"] = "true";
        variables["HOME"] = folder.path().string();
        options.variables = [this](const std::string& name) {
            const std::lock_guard lock(mutex);
            const auto found = variables.find(name);
            return found == variables.end() ? std::string() : found->second;
        };
        options.region = "eu-west-1";
        options.fetching.agent_timeout = 1'000ms;
        options.fetching.asking.pause = 10ms;
    }
    ~AwsCredentials() override {
        EXPECT_THAT(log.text(), AllOf(Not(HasSubstr("S3CR3T")), Not(HasSubstr("T0K3N"))));
    }

    void set(const std::string& name, const std::string& value) {
        const std::lock_guard lock(mutex);
        variables[name] = value;
    }
    void write(const std::string& name, const std::string& content) {
        std::ofstream(folder.file(name)) << content;
    }
    static result<aws_keys> get(key_chain& from) {
        const auto told = std::make_shared<std::promise<result<aws_keys>>>();
        auto outcome = told->get_future();
        from.get([told](result<aws_keys> keys) { told->set_value(std::move(keys)); });
        if (outcome.wait_for(20s) != std::future_status::ready) return fail(errc::internal, "nothing came");
        return outcome.get();
    }
    static std::string name_of(const result<aws_keys>& keys) {
        return keys ? keys->access_key : keys.error().detail;
    }

    support::temporary_folder folder;
    std::mutex mutex;
    std::map<std::string, std::string> variables;
    key_chain_options options;
    locked_log log;
};

TEST_F(AwsCredentials, OfAContainerAreFetchedOnceForAllWhoWait) {
    raw_http_server server([](const seen_request& request) {
        EXPECT_EQ(request.target, "/keys?id=7");
        EXPECT_EQ(request.header("authorization"), "T0K3N");
        return raw_answer{http_answer(200, document("A", 1h)), 300ms};
    });
    write("token", "T0K3N\n");
    set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/keys?id=7");
    set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "beaten by the file");
    set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder.file("token"));
    key_chain chain(options, log);
    std::vector<std::future<std::string>> all;
    for (int i = 0; i < 16; ++i)
        all.push_back(std::async(std::launch::async, [&] { return name_of(get(chain)); }));
    for (auto& one : all)
        EXPECT_EQ(one.get(), "A");
    EXPECT_EQ(server.requests(), 1U);
    EXPECT_THAT(log.text(), HasSubstr("credentials.found source=the container"));
}

TEST_F(AwsCredentials, AreRenewedInTheBackgroundAndGivenAtOnceMeanwhile) {
    std::atomic<int> number{0};
    raw_http_server server([&](const seen_request&) {
        const int n = ++number;
        return raw_answer{
            http_answer(200, document(fmt::format("A{}", n), n == 1 ? 6s : 3600s)), n == 1 ? 0ms : 500ms};
    });
    set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url());
    key_chain chain(options, log);
    EXPECT_EQ(name_of(get(chain)), "A1");
    const auto begun = clock::now();
    nanoseconds slowest{0};
    while (name_of(get(chain)) == "A1" && clock::now() - begun < 20s) {
        const auto asked = clock::now();
        (void)get(chain);
        slowest = std::max<nanoseconds>(slowest, clock::now() - asked);
        std::this_thread::sleep_for(10ms);
    }
    EXPECT_EQ(name_of(get(chain)), "A2");
    EXPECT_LT(clock::now() - begun, 10s);
    EXPECT_EQ(server.requests(), 2U);
}

TEST_F(AwsCredentials, RefusedOnesAreReplacedByTheTokenAsItIsNow) {
    raw_http_server server([&](const seen_request& request) {
        return raw_answer{http_answer(200, document(request.header("authorization"), 1h))};
    });
    write("token", "one");
    set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url());
    set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", folder.file("token"));
    options.refreshing.refused_pause = 1ms;
    key_chain chain(options, log);
    const auto first = get(chain);
    ASSERT_EQ(name_of(first), "one");
    write("token", "two");
    std::this_thread::sleep_for(5ms);
    chain.refused(*first);
    EXPECT_EQ(name_of(get(chain)), "two");
    chain.refused(*first);  // late
    EXPECT_EQ(name_of(get(chain)), "two");
    EXPECT_EQ(server.requests(), 2U);
}

TEST_F(AwsCredentials, OfAnInstanceOutliveTheirEndWhileItsServiceIsDown) {
    std::atomic<bool> up{true};
    raw_http_server server([&](const seen_request& request) -> raw_answer {
        if (!up) return {http_answer(500, "down")};
        if (request.method == "PUT") return {http_answer(200, "PASS")};
        if (request.header("x-aws-ec2-metadata-token") != "PASS") return {http_answer(401, "")};
        if (request.target.ends_with("security-credentials/")) return {http_answer(200, "my-role")};
        return {http_answer(200, document("I", 3s))};
    });
    set("AWS_EC2_METADATA_DISABLED", "");
    set("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url());
    key_chain chain(options, log);
    ASSERT_EQ(name_of(get(chain)), "I");
    up = false;
    std::this_thread::sleep_for(4s);
    const auto asked = clock::now();
    EXPECT_EQ(name_of(get(chain)), "I");
    EXPECT_LT(clock::now() - asked, 1s);
    EXPECT_THAT(log.text(), HasSubstr("credentials.failed"));
}

TEST_F(AwsCredentials, OfAnInstanceWhoseTokenNeverArrivesComeByVersion1) {
    std::vector<std::string> asked;
    raw_http_server server([&](const seen_request& request) -> raw_answer {
        {
            const std::lock_guard lock(mutex);
            asked.push_back(request.method + " " + request.target);
        }
        if (request.method == "PUT") return {http_answer(200, "PASS"), 30s};  // beyond the hop limit
        if (request.target.ends_with("security-credentials/")) return {http_answer(200, "my-role")};
        return {http_answer(200, document("I", 1h))};
    });
    set("AWS_EC2_METADATA_DISABLED", "");
    set("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url());
    options.fetching.agent_timeout = 500ms;
    {
        key_chain chain(options, log);
        EXPECT_EQ(name_of(get(chain)), "I");
    }
    {
        const std::lock_guard lock(mutex);
        EXPECT_THAT(
            asked,
            ElementsAre(
                "PUT /latest/api/token",
                "GET /latest/meta-data/iam/security-credentials/",
                "GET /latest/meta-data/iam/security-credentials/my-role"
            )
        );
    }
    set("AWS_EC2_METADATA_V1_DISABLED", "true");
    key_chain chain(options, log);
    EXPECT_THAT(name_of(get(chain)), HasSubstr("hop limit"));
}

TEST_F(AwsCredentials, NowhereAreOneErrorThatSaysWhereWasLooked) {
    key_chain none(options, log);
    EXPECT_THAT(
        name_of(get(none)),
        AllOf(HasSubstr("there are no AWS credentials"), HasSubstr(folder.file(".aws/config")))
    );
    set("AWS_EC2_METADATA_DISABLED", "");
    set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1");
    key_chain unreachable(options, log);
    const auto keys = get(unreachable);
    ASSERT_FALSE(keys);
    EXPECT_EQ(keys.error().code, errc::permission_denied);
    EXPECT_THAT(
        keys.error().detail, AllOf(HasSubstr("the metadata service of EC2"), HasSubstr("AWS_PROFILE"))
    );
}

TEST_F(AwsCredentials, ByAWebIdentityReadItsTokenAtEachRefresh) {
    raw_http_server server([](const seen_request& request) {
        EXPECT_FALSE(request.headers.contains("authorization"));
        const auto token = request.body.substr(request.body.rfind('=') + 1);
        return raw_answer{http_answer(200, sts_document("BY-" + token, 1h))};
    });
    write("jwt", "one");
    set("AWS_ENDPOINT_URL_STS", server.url());
    set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    set("AWS_WEB_IDENTITY_TOKEN_FILE", folder.file("jwt"));
    options.refreshing.refused_pause = 1ms;
    key_chain chain(options, log);
    const auto first = get(chain);
    ASSERT_EQ(name_of(first), "BY-one");
    write("jwt", "two");
    std::this_thread::sleep_for(5ms);
    chain.refused(*first);
    EXPECT_EQ(name_of(get(chain)), "BY-two");
}

TEST_F(AwsCredentials, OfAProfileComeThroughRolesAndAProgram) {
    std::vector<std::string> signers;
    raw_http_server server([&](const seen_request& request) {
        const auto by = request.header("authorization");
        const std::lock_guard lock(mutex);
        signers.push_back(by.substr(0, by.find('/')));
        return raw_answer{http_answer(200, sts_document(fmt::format("ROLE{}", signers.size()), 1h))};
    });
    std::filesystem::create_directory(folder.path() / ".aws");
    write(
        ".aws/config",
        "[profile a]\nrole_arn=arn:aws:iam::1:role/a\nsource_profile=b\n[profile "
        "b]\nrole_arn=arn:aws:iam::1:role/b\n"
        "source_profile=c\n[profile c]\ncredential_process = printf '{\"Version\":1,\"AccessKeyId\":\"P\","
        "\"SecretAccessKey\":\"S3CR3T\"}'\n"
    );
    set("AWS_PROFILE", "a");
    set("AWS_ENDPOINT_URL", server.url());
    key_chain chain(options, log);
    EXPECT_EQ(name_of(get(chain)), "ROLE2");
    EXPECT_THAT(signers, ElementsAre("AWS4-HMAC-SHA256 Credential=P", "AWS4-HMAC-SHA256 Credential=ROLE1"));
}

TEST_F(AwsCredentials, OfAProgramThatFailsAreAnErrorWithoutWhatItPrinted) {
    std::filesystem::create_directory(folder.path() / ".aws");
    for (const auto* script :
         {"sh -c 'echo S3CR3T; echo S3CR3T >&2; exit 1'",
          "echo S3CR3T",
          "sh -c 'yes S3CR3T'",
          "sh -c 'echo S3CR3T; exec sleep 60'",
          "/no/such/program"}) {
        write(".aws/config", std::string("[default]\ncredential_process = ") + script + "\n");
        options.fetching.program_timeout = 500ms;
        key_chain chain(options, log);
        const auto keys = get(chain);
        ASSERT_FALSE(keys) << script;
        EXPECT_THAT(keys.error().detail, AllOf(HasSubstr("credential_process ("), Not(HasSubstr("S3CR3T"))))
            << script;
    }
}

TEST_F(AwsCredentials, AreNotWaitedForWhenTheProcessStops) {
    std::filesystem::create_directory(folder.path() / ".aws");
    raw_http_server server([](const seen_request&) { return raw_answer{"", 60s}; });
    options.fetching.agent_timeout = 60s;
    for (const bool by_program : {true, false}) {
        if (by_program)
            write(".aws/config", "[default]\ncredential_process = sleep 60\n");
        else
            write(".aws/config", "");
        set("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url());
        auto chain = std::make_unique<key_chain>(options, log);
        std::promise<result<aws_keys>> told;
        chain->get([&](result<aws_keys> keys) { told.set_value(std::move(keys)); });
        std::this_thread::sleep_for(200ms);
        const auto begun = clock::now();
        chain.reset();
        EXPECT_LT(clock::now() - begun, 10s);
        const auto keys = told.get_future().get();
        ASSERT_FALSE(keys);
        EXPECT_EQ(keys.error().code, errc::cancelled);
    }
}

}  // namespace
}  // namespace millrace::aws
