#include "credentials/profiles.hpp"

#include "credentials/ini.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

profiles merged(const std::string& credentials, const std::string& config) {
    return merge_profiles({"/h/credentials", credentials}, {"/h/config", config}).value();
}

std::string why(const std::string& credentials, const std::string& config) {
    const auto read = merge_profiles({"/h/credentials", credentials}, {"/h/config", config});
    return read ? "it was taken" : read.error().detail;
}

TEST(Profiles, AreSectionsInTheCredentialsFileAndCarryThePrefixInTheConfigFile) {
    const auto read = merged(
        "[default]\naws_access_key_id = D\n[work]\naws_access_key_id=W\n[profile no]\nx=1\n",
        "[profile work]\nregion = eu-west-1\n[profile \"two words\"]\nregion=x\n[bare]\nx=1\n"
        "[sso-session s]\nsso_region=r\n[services s]\n[profileless]\nx=1\n"
    );
    EXPECT_EQ(read.by_name.size(), 3U);
    EXPECT_EQ(read.by_name.at("default"), (profile{{"aws_access_key_id", "D"}}));
    EXPECT_EQ(read.by_name.at("work"), (profile{{"aws_access_key_id", "W"}, {"region", "eu-west-1"}}));
    EXPECT_EQ(read.by_name.at("two words"), (profile{{"region", "x"}}));
}

TEST(Profiles, TheCredentialsFileWinsForEachValue) {
    const auto read =
        merged("[a]\nregion = of-credentials\n", "[profile a]\nregion = of-config\nrole_arn = r\n");
    EXPECT_EQ(read.by_name.at("a"), (profile{{"region", "of-credentials"}, {"role_arn", "r"}}));
}

TEST(Profiles, TheLongNameOfTheDefaultWinsOverTheShortOne) {
    EXPECT_EQ(
        merged("", "[default]\nregion = short\nx = 1\n[profile default]\nregion = long\n")
            .by_name.at("default"),
        (profile{{"region", "long"}})
    );
}

TEST(Profiles, SectionsOfOneNameAreOneProfileAndTheLaterValueHolds) {
    EXPECT_EQ(
        merged("[a]\nx = 1\ny = 1\n[b]\n[a]\nx = 2\n", "").by_name.at("a"), (profile{{"x", "2"}, {"y", "1"}})
    );
}

TEST(Profiles, CommentsBlanksMarksAndLineEndsOfWindowsAreNoPartOfAValue) {
    const auto read = merged(
        "\xef\xbb\xbf# a comment\r\n; another\r\n\r\n  [ a ] ; of the section\r\nKEY  =  v#1;2 # three\r\n"
        "empty =\r\nonly = # comment\r\n",
        ""
    );
    EXPECT_EQ(read.by_name.at("a"), (profile{{"key", "v#1;2"}, {"empty", ""}, {"only", ""}}));
}

TEST(Profiles, IndentedLinesBelongToTheValueAbove) {
    const auto read = merged("", "[profile a]\ns3 =\n  max = 3\n  key = not this\nregion = r\n");
    EXPECT_EQ(read.by_name.at("a"), (profile{{"s3", "\nmax = 3\nkey = not this"}, {"region", "r"}}));
}

TEST(Profiles, AnIndentedLineBelowASectionIsAValue) {
    EXPECT_EQ(merged("[a]\n  x = 1\n", "").by_name.at("a"), (profile{{"x", "1"}}));
}

TEST(Profiles, AFaultNamesFileAndLineAndShowsNothingOfIt) {
    EXPECT_THAT(
        why("[a]\naws_secret_access_key secret\n", ""),
        AllOf(HasSubstr("/h/credentials, line 2"), Not(HasSubstr("secret")))
    );
    EXPECT_THAT(
        why("", "# one\nx = secret\n"), AllOf(HasSubstr("/h/config, line 2"), Not(HasSubstr("secret")))
    );
    EXPECT_THAT(why("[a\n", ""), HasSubstr("without \"]\""));
    EXPECT_THAT(why("[a] secret\n", ""), AllOf(HasSubstr("behind \"]\""), Not(HasSubstr("secret"))));
    EXPECT_THAT(why("[ ]\n", ""), HasSubstr("without a name"));
    EXPECT_THAT(why("[a]\n = secret\n", ""), AllOf(HasSubstr("without a name"), Not(HasSubstr("secret"))));
    EXPECT_THAT(why(std::string(ini_bytes_max + 1, '\n'), ""), HasSubstr("larger"));
}

TEST(Profiles, FilesAreWhereTheEnvironmentSays) {
    const auto variables = [](const std::string& name) -> std::string {
        if (name == "HOME") return "/home/u";
        return name == "AWS_CONFIG_FILE" ? "~/conf" : "";
    };
    EXPECT_EQ(credentials_file(variables).path, "/home/u/.aws/credentials");
    EXPECT_EQ(config_file(variables).path, "/home/u/conf");
    EXPECT_EQ(config_file([](const std::string&) { return std::string(); }).path, "");
}

}  // namespace
}  // namespace millrace::aws
