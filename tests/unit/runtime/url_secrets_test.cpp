#include "support/url_roles.hpp"

#include <millrace/url.hpp>

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

TEST(UrlSecrets, APasswordIsHiddenAndTheRestIsShown) {
    EXPECT_EQ(without_secrets("postgresql://u:secret@h/db"), "postgresql://u:***@h/db");
    EXPECT_EQ(without_secrets("postgresql://u@h/db"), "postgresql://u@h/db");
    EXPECT_EQ(without_secrets("postgresql://h1:5432,h2:5433/db"), "postgresql://h1:5432,h2:5433/db");
    EXPECT_EQ(without_secrets("postgresql://[::1]:5432/db"), "postgresql://[::1]:5432/db");
    EXPECT_EQ(without_secrets("sqlite:a:b@c"), "sqlite:a:b@c");
    EXPECT_EQ(without_secrets(""), "");
    EXPECT_EQ(without_secrets("dead-letter=postgresql://u:secret@h"), "dead-letter=postgresql://u:***@h");
}

TEST(UrlSecrets, APasswordThatShouldHaveBeenEncodedIsHiddenToo) {
    EXPECT_EQ(without_secrets("postgresql://u:se@cr@h/db"), "postgresql://u:***@h/db");
    EXPECT_EQ(without_secrets("postgresql://u:se/cr@h/db"), "postgresql://u:***@h/db");
    EXPECT_EQ(without_secrets("postgresql://u:se?cr@h/db"), "postgresql://u:***@h/db");
    EXPECT_EQ(without_secrets("postgresql://u:12?34@h/db"), "postgresql://u:12?***");
}

TEST(UrlSecrets, ValuesOfSecretParametersAreHidden) {
    EXPECT_EQ(
        without_secrets("kafka://b:9092?sasl.username=a@b&sasl.password=x@y&linger.ms=5"),
        "kafka://b:9092?sasl.username=a@b&sasl.password=***&linger.ms=5"
    );
    EXPECT_EQ(
        without_secrets("kafka://b?ssl.key.pem=x&SSL.Key.Password=y&sasl.oauthbearer.client.secret=z"),
        "kafka://b?ssl.key.pem=***&SSL.Key.Password=***&sasl.oauthbearer.client.secret=***"
    );
    EXPECT_EQ(without_secrets("postgresql://h/d?password=a?b"), "postgresql://h/d?password=***");
    EXPECT_EQ(without_secrets("kafka://b?sasl.p%61ssword=x"), "kafka://b?sasl.p%61ssword=***");
    EXPECT_EQ(
        without_secrets("kafka://b?sasl.password=a&b=c&D.e=f&x.9=z&linger.ms=5"),
        "kafka://b?sasl.password=***&***&***&***&linger.ms=5"
    ) << "an & that should have been encoded";
    EXPECT_EQ(
        without_secrets("postgresql://h/d?password=a&b=c&table=t&sslmode=require"),
        "postgresql://h/d?password=***&***&table=t&sslmode=require"
    );
    EXPECT_EQ(without_secrets("kafka://b?x&linger.ms=5&"), "kafka://b?***&linger.ms=5&");
}

TEST(UrlSecrets, APasswordInAnAddressThatIsAValueIsHiddenToo) {
    EXPECT_EQ(
        without_secrets("dynamodb://eu-west-1/t?endpoint=http://u:secret@h:1/p"),
        "dynamodb://eu-west-1/t?endpoint=http://u:***@h:1/p"
    );
    EXPECT_EQ(
        without_secrets("dynamodb://eu-west-1/t?endpoint=http://u:se&cr@h"),
        "dynamodb://eu-west-1/t?endpoint=***&***"
    );
    EXPECT_EQ(
        without_secrets("kinesis://eu-west-1/s?endpoint=http://127.0.0.1:4567"),
        "kinesis://eu-west-1/s?endpoint=http://127.0.0.1:4567"
    );
}

TEST(UrlSecrets, APasswordIsHiddenInWhatIsNoAddressToo) {
    EXPECT_EQ(
        without_secrets("host=db user=relay password=s3cret dbname=shop"),
        "host=db user=relay password=*** dbname=shop"
    );
    EXPECT_EQ(without_secrets("password='s3 cr\\'et' host=db"), "password=*** host=db");
    EXPECT_EQ(without_secrets("password = s3 cret host = db"), "password =*** host = db");
    EXPECT_EQ(without_secrets("PGPASSWORD=s3cret"), "PGPASSWORD=***");
    EXPECT_EQ(without_secrets("relay:s3cret@db/shop"), "relay:***@db/shop");
    EXPECT_EQ(without_secrets("postgressql//relay:s3cret@db/shop"), "postgressql//relay:***@db/shop");
    EXPECT_EQ(without_secrets("kafka:/h:9092?sasl.password=s3cret"), "kafka:/h:9092?sasl.password=***");
    EXPECT_EQ(without_secrets("relay:s3cret@x://h"), "relay:***@x://h");
    EXPECT_EQ(without_secrets("password=s3cret postgresql://h/d"), "password=***://h/d");
    EXPECT_EQ(without_secrets("local:a:b@c=d"), "local:a:b@c=d") << "a file";
    EXPECT_EQ(without_secrets("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00Z");
}

TEST(UrlSecrets, NoMessageOfAnyRoleShowsThePasswordOfWhatIsNoAddress) {
    for (const std::string text :
         {"host=db user=relay password=s3cret dbname=shop",
          "host=db password=s3cret:x user=relay",
          "relay:s3cret@db/shop",
          "postgressql//relay:s3cret@db/shop",
          "postgresql:relay:s3cret@db/shop",
          "kafka:/h:9092?sasl.password=s3cret"}) {
        for (const auto role : support::url_roles) {
            const auto read = parse_url(text, role);
            ASSERT_FALSE(read) << text;
            EXPECT_EQ(read.error().detail.find("s3cret"), std::string::npos) << read.error().detail;
        }
    }
    EXPECT_NE(
        parse_url("host=db dbname=shop", url_role::outbox).error().detail.find("write it as a URL"),
        std::string::npos
    );
}

RC_GTEST_PROP(UrlSecrets, NoPasswordWithoutAQuestionMarkShows, ()) {
    auto password = "~" + *rc::gen::container<std::string>(rc::gen::inRange('!', '~')) + "~";
    std::replace(password.begin(), password.end(), '?', '!');
    const auto in_user = without_secrets("postgresql://u:" + password + "@h/db?sslmode=require");
    RC_ASSERT(in_user == "postgresql://u:***@h/db?sslmode=require");
    std::replace(password.begin(), password.end(), '&', '!');
    const auto in_query = without_secrets("postgresql://h/db?password=" + password + "&sslmode=require");
    RC_ASSERT(in_query == "postgresql://h/db?password=***&sslmode=require");
}

}  // namespace
}  // namespace millrace
