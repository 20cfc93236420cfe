#include "credentials/key_plan.hpp"

#include "credentials/origins.hpp"
#include "credentials/region.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string arn = "arn:aws:iam::123456789012:role/";

struct KeyPlan : testing::Test {
    [[nodiscard]] result<key_plan> planned(const std::string& region = {}) const {
        return plan_keys(
            lookup(),
            [this] {
                return merge_profiles({"/h/credentials", credentials}, {"/h/config", config});
            },
            region
        );
    }
    [[nodiscard]] environment lookup() const {
        return [this](const std::string& name) {
            const auto found = variables.find(name);
            return found == variables.end() ? std::string() : found->second;
        };
    }
    [[nodiscard]] std::string why() const {
        const auto plan = planned();
        return plan ? "there is a plan: " + plan->name : plan.error().detail;
    }
    template <class T>
    [[nodiscard]] T origin() const {
        const auto plan = planned();
        EXPECT_TRUE(plan) << plan.error().detail;
        const auto* found = plan ? std::get_if<T>(&plan->origin) : nullptr;
        EXPECT_NE(found, nullptr);
        return found == nullptr ? T{} : *found;
    }
    [[nodiscard]] std::vector<std::string> roles() const {
        std::vector<std::string> names;
        const auto plan = planned();
        if (!plan) return {plan.error().detail};
        for (const auto& as : plan->roles)
            names.push_back(as.arn.substr(arn.size()));
        return names;
    }

    std::map<std::string, std::string> variables;
    std::string credentials;
    std::string config;
};

TEST_F(KeyPlan, TheEnvironmentGoesFirstAndNoFileIsRead) {
    variables = {
        {"AWS_ACCESS_KEY_ID", "AK"},
        {"AWS_SECRET_ACCESS_KEY", "SK"},
        {"AWS_SESSION_TOKEN", "T"},
        {"AWS_PROFILE", "gone"},
        {"AWS_ROLE_ARN", arn + "r"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}};
    config = "not a file of profiles";
    EXPECT_EQ(origin<keys_from::values>().keys, (aws_keys{"AK", "SK", "T", std::nullopt}));
}

TEST_F(KeyPlan, HalfAPairOfKeysIsAnError) {
    variables = {{"AWS_ACCESS_KEY_ID", "AK"}};
    EXPECT_THAT(why(), HasSubstr("only one of AWS_ACCESS_KEY_ID"));
    variables = {{"AWS_SECRET_ACCESS_KEY", "S3CR3T"}};
    EXPECT_THAT(why(), AllOf(HasSubstr("only one of"), Not(HasSubstr("S3CR3T"))));
}

TEST_F(KeyPlan, KeysThatCannotStandInAHeaderAreNotShown) {
    variables = {{"AWS_ACCESS_KEY_ID", "AK"}, {"AWS_SECRET_ACCESS_KEY", "S3CR3T\nx"}};
    EXPECT_THAT(why(), AllOf(HasSubstr("copy them again"), Not(HasSubstr("S3CR3T"))));
}

TEST_F(KeyPlan, WebIdentityGoesBeforeProfiles) {
    variables = {
        {"AWS_ROLE_ARN", arn + "pod"}, {"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}, {"AWS_REGION", "eu-west-1"}};
    credentials = "[default]\naws_access_key_id = AK\naws_secret_access_key = SK\n";
    const auto found = origin<keys_from::web_identity>();
    EXPECT_EQ(found.token_file, "/t");
    EXPECT_EQ(found.as, (role{arn + "pod", "millrace", "", 3600s}));
    EXPECT_EQ(planned()->sts, (sts_place{"https://sts.eu-west-1.amazonaws.com/", "eu-west-1"}));
    variables["AWS_ROLE_SESSION_NAME"] = "pod-7";
    EXPECT_EQ(origin<keys_from::web_identity>().as.session_name, "pod-7");
    variables.erase("AWS_ROLE_ARN");
    EXPECT_THAT(why(), HasSubstr("AWS_ROLE_ARN names no role"));
}

TEST_F(KeyPlan, TheProfileIsTheNamedOneOrTheDefault) {
    credentials =
        "[default]\naws_access_key_id = D\naws_secret_access_key = S\n"
        "[work]\naws_access_key_id = W\naws_secret_access_key = S\naws_session_token = T\n";
    EXPECT_EQ(origin<keys_from::values>().keys, (aws_keys{"D", "S", "", std::nullopt}));
    variables = {{"AWS_PROFILE", "work"}};
    EXPECT_EQ(origin<keys_from::values>().keys, (aws_keys{"W", "S", "T", std::nullopt}));
    EXPECT_EQ(planned()->name, "profile \"work\"");
    variables = {{"AWS_PROFILE", "gone"}};
    EXPECT_THAT(
        why(), AllOf(HasSubstr("profile \"gone\""), HasSubstr("/h/credentials"), HasSubstr("/h/config"))
    );
}

TEST_F(KeyPlan, AProfileWithoutKeysLeavesTheMatterToTheContainer) {
    config = "[default]\nregion = eu-west-1\n";
    variables = {{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x"}};
    EXPECT_EQ(origin<keys_from::container>().url, "http://169.254.170.2/v2/x");
}

TEST_F(KeyPlan, HalfAPairOfKeysInAProfileIsAnError) {
    credentials = "[default]\naws_secret_access_key = S3CR3T\n";
    EXPECT_THAT(why(), AllOf(HasSubstr("profile \"default\" lacks"), Not(HasSubstr("S3CR3T"))));
}

TEST_F(KeyPlan, RolesAreTakenOnFromTheSourceOnwards) {
    credentials = "[base]\naws_access_key_id = B\naws_secret_access_key = S\n";
    config = "[profile a]\nrole_arn = " + arn +
             "a\nsource_profile = b\nexternal_id = x y\nduration_seconds = 900\n" +
             "role_session_name = me\n[profile b]\nrole_arn = " + arn + "b\nsource_profile = base\n";
    variables = {{"AWS_PROFILE", "a"}};
    EXPECT_THAT(roles(), ElementsAre("b", "a"));
    EXPECT_EQ(origin<keys_from::values>().keys.access_key, "B");
    EXPECT_EQ(planned()->roles[1], (role{arn + "a", "me", "x y", 900s}));
    EXPECT_FALSE(planned()->may_outlive_expiry());
}

TEST_F(KeyPlan, AProfileThatIsItsOwnSourceUsesItsKeys) {
    credentials = "[a]\naws_access_key_id = A\naws_secret_access_key = S\n";
    config = "[profile a]\nrole_arn = " + arn + "a\nsource_profile = a\n";
    variables = {{"AWS_PROFILE", "a"}};
    EXPECT_THAT(roles(), ElementsAre("a"));
    EXPECT_EQ(origin<keys_from::values>().keys.access_key, "A");
    credentials.clear();
    EXPECT_THAT(why(), HasSubstr("has no keys"));
}

TEST_F(KeyPlan, ASourceThatIsItsOwnSourceUsesItsKeysAndItsRole) {
    credentials = "[b]\naws_access_key_id = B\naws_secret_access_key = S\n";
    config = "[profile a]\nrole_arn = " + arn + "a\nsource_profile = b\n[profile b]\nrole_arn = " + arn +
             "b\nsource_profile = b\n";
    variables = {{"AWS_PROFILE", "a"}};
    EXPECT_THAT(roles(), ElementsAre("b", "a"));
}

TEST_F(KeyPlan, ACircleOfSourcesIsAnError) {
    config = "[profile a]\nrole_arn = " + arn + "a\nsource_profile = b\n[profile b]\nrole_arn = " + arn +
             "b\nsource_profile = c\n[profile c]\nrole_arn = " + arn + "c\nsource_profile = a\n";
    variables = {{"AWS_PROFILE", "a"}};
    EXPECT_THAT(why(), HasSubstr("profile \"c\" leads back to profile \"a\""));
}

TEST_F(KeyPlan, ARoleNeedsExactlyOneSource) {
    variables = {{"AWS_PROFILE", "a"}};
    config = "[profile a]\nrole_arn = " + arn + "a\n";
    EXPECT_THAT(why(), HasSubstr("with neither source_profile and credential_source"));
    config += "source_profile = b\ncredential_source = Environment\n";
    EXPECT_THAT(why(), HasSubstr("with both source_profile and credential_source"));
}

TEST_F(KeyPlan, AMissingSourceIsNamedWithWhoNamesIt) {
    variables = {{"AWS_PROFILE", "a"}};
    config = "[profile a]\nrole_arn = " + arn + "a\nsource_profile = b\n";
    EXPECT_THAT(why(), HasSubstr("profile \"b\", the source_profile of profile \"a\", is neither in"));
}

TEST_F(KeyPlan, TheSourceOfCredentialsCanBeTheMachine) {
    const std::string head = "[profile a]\nrole_arn = " + arn + "a\ncredential_source = ";
    variables = {{"AWS_PROFILE", "a"}};
    config = head + "Ec2InstanceMetadata\n";
    EXPECT_EQ(origin<keys_from::instance>(), keys_from::instance{});
    EXPECT_THAT(roles(), ElementsAre("a"));
    config = head + "EcsContainer\n";
    EXPECT_THAT(why(), HasSubstr("no AWS_CONTAINER_CREDENTIALS_..."));
    variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/x";
    EXPECT_EQ(origin<keys_from::container>().url, "http://169.254.170.2/x");
    config = head + "Environment\n";
    EXPECT_THAT(why(), HasSubstr("AWS_ACCESS_KEY_ID is not set"));
    config = head + "elsewhere\n";
    EXPECT_THAT(why(), HasSubstr("unknown credential_source"));
}

TEST_F(KeyPlan, ARoleByAWebIdentityOfAProfileNeedsNoSource) {
    variables = {{"AWS_PROFILE", "a"}};
    config = "[profile a]\nrole_arn = " + arn + "a\nweb_identity_token_file = /t\n";
    EXPECT_EQ(origin<keys_from::web_identity>().token_file, "/t");
    EXPECT_THAT(roles(), IsEmpty());
}

TEST_F(KeyPlan, WhatNeedsAPersonIsAClearError) {
    variables = {{"AWS_PROFILE", "a"}};
    config = "[profile a]\nrole_arn = " + arn + "a\nsource_profile = b\nmfa_serial = arn:x\n";
    EXPECT_THAT(why(), HasSubstr("mfa_serial"));
    config = "[profile a]\nsso_session = s\nregion = x\n";
    EXPECT_THAT(why(), HasSubstr("IAM Identity Center"));
    config = "[profile a]\nsso_start_url = s\n";
    EXPECT_THAT(why(), HasSubstr("IAM Identity Center"));
}

TEST_F(KeyPlan, ValuesOfARoleAreWithinTheLimitsOfSts) {
    variables = {{"AWS_PROFILE", "a"}};
    const std::string head = "[profile a]\nsource_profile = a\nrole_arn = ";
    config = head + "admin\n";
    EXPECT_THAT(why(), HasSubstr("names no role"));
    for (const auto* seconds : {"899", "43201", "1h", "-900", "99999999999999999999"}) {
        config = head + arn + "a\nduration_seconds = " + seconds + "\n";
        EXPECT_THAT(why(), HasSubstr("duration_seconds")) << seconds;
    }
    for (const std::string name : {"x", "with blank", "sl/ash"}) {
        config = head + arn + "a\nrole_session_name = " + name + "\n";
        EXPECT_THAT(why(), HasSubstr("role session name")) << name;
    }
}

TEST_F(KeyPlan, AProgramIsSplitWithoutAShell) {
    config = "[default]\ncredential_process = /opt/keys --for 'a b' \"$HOME\"\n";
    EXPECT_THAT(origin<keys_from::program>().command, ElementsAre("/opt/keys", "--for", "a b", "$HOME"));
    config = "[default]\ncredential_process = /opt/keys --secret 'S3CR3T\n";
    EXPECT_THAT(why(), AllOf(HasSubstr("quote that is not closed"), Not(HasSubstr("S3CR3T"))));
}

TEST_F(KeyPlan, TheTokenOfAContainerMayBeInAFileWhichGoesFirst) {
    variables = {
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "T"}};
    EXPECT_EQ(origin<keys_from::container>().token, "T");
    variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/t";
    EXPECT_EQ(
        origin<keys_from::container>(),
        (keys_from::container{"http://169.254.170.23/v1/credentials", "", "/t"})
    );
    EXPECT_TRUE(planned()->may_outlive_expiry());
}

TEST_F(KeyPlan, AContainerIsNotSentToStrangers) {
    for (const std::string url :
         {"http://example.com/",
          "http://127.0.0.1@example.com/",
          "http://169.254.170.2.example.com/",
          "http://127.0.0.1\\@example.com/",
          "ftp://127.0.0.1/",
          "http://[fd00:ec2::24]/",
          "http://127.0.0.256/",
          "http://127.1/",
          "http://1270.0.0.1/",
          "http://127.0.0.1:x/",
          "http://[::1/",
          "127.0.0.1/",
          "http://",
          "http://127.0.0.1/a b",
          "http://10.0.0.1/",
          "http://169.254.169.254/",
          "http://127.0.0.1%00.example.com/"}) {
        variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}};
        EXPECT_THAT(why(), HasSubstr("not asked for keys")) << url;
    }
    for (const std::string url :
         {"https://example.com/x",
          "http://localhost:81/x",
          "http://127.0.0.1",
          "http://127.9.8.7:65535/?a=b",
          "http://[::1]:80/x",
          "http://169.254.170.2/x",
          "http://169.254.170.23/v1/credentials",
          "http://[fd00:ec2::23]/v1/credentials",
          "HTTP://LOCALHOST/"}) {
        variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}};
        EXPECT_EQ(origin<keys_from::container>().url, url);
    }
    variables = {{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@example.com/"}};
    EXPECT_THAT(why(), HasSubstr("does not begin with \"/\""));
}

TEST_F(KeyPlan, TheInstanceIsTheLastResort) {
    EXPECT_EQ(origin<keys_from::instance>(), (keys_from::instance{"http://169.254.169.254", true}));
    EXPECT_TRUE(planned()->last_resort);
    EXPECT_TRUE(planned()->may_outlive_expiry());
    variables = {
        {"AWS_EC2_METADATA_V1_DISABLED", "True"}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6"}};
    EXPECT_EQ(origin<keys_from::instance>(), (keys_from::instance{"http://[fd00:ec2::254]", false}));
    variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "http://127.0.0.1:1/";
    EXPECT_EQ(origin<keys_from::instance>().endpoint, "http://127.0.0.1:1");
    variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = "127.0.0.1";
    EXPECT_THAT(why(), HasSubstr("is no address"));
    variables = {{"AWS_EC2_METADATA_DISABLED", "true"}};
    EXPECT_THAT(why(), AllOf(HasSubstr("there are no AWS credentials"), HasSubstr("/h/config")));
}

TEST_F(KeyPlan, StsIsAskedInTheRegionOfTheServiceElseInTheConfiguredOne) {
    config =
        "[default]\nrole_arn = " + arn + "a\ncredential_source = Ec2InstanceMetadata\nregion = eu-north-1\n";
    EXPECT_EQ(
        planned("cn-north-1")->sts, (sts_place{"https://sts.cn-north-1.amazonaws.com.cn/", "cn-north-1"})
    );
    EXPECT_EQ(planned()->sts.region, "eu-north-1");
    variables = {{"AWS_DEFAULT_REGION", "eu-west-2"}};
    EXPECT_EQ(planned()->sts.region, "eu-west-2");
    variables["AWS_REGION"] = "eu-west-1";
    EXPECT_EQ(planned()->sts.region, "eu-west-1");
    variables["AWS_REGION"] = "evil.example.com/";
    EXPECT_THAT(why(), HasSubstr("no region's name"));
    variables = {{"AWS_ENDPOINT_URL", "http://127.0.0.1:5/"}};
    EXPECT_EQ(planned()->sts, (sts_place{"http://127.0.0.1:5/", "eu-north-1"}));
    variables["AWS_ENDPOINT_URL_STS"] = "http://127.0.0.1:6";
    EXPECT_EQ(planned()->sts.url, "http://127.0.0.1:6/");
    config = "[default]\nrole_arn = " + arn + "a\ncredential_source = Ec2InstanceMetadata\n";
    variables.clear();
    EXPECT_EQ(planned()->sts, (sts_place{"https://sts.amazonaws.com/", "us-east-1"}));
}

}  // namespace
}  // namespace millrace::aws
