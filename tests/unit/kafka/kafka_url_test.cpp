#include "kafka_url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string fault(std::string_view url) {
    const auto parsed = parse_kafka_url(url);
    EXPECT_FALSE(parsed) << url;
    if (parsed) return {};
    EXPECT_EQ(parsed.error().code, errc::invalid_argument);
    return parsed.error().detail;
}

TEST(KafkaUrl, NamesBrokersAndProperties) {
    const auto address = parse_kafka_url("kafka://a:9092,b.example:9093?linger.ms=1&sasl.username=u").value();
    EXPECT_EQ(address.servers, "a:9092,b.example:9093");
    EXPECT_THAT(
        address.properties,
        ElementsAre(kafka_property{"linger.ms", "1"}, kafka_property{"sasl.username", "u"})
    );
    EXPECT_EQ(*address.find("linger.ms"), "1");
    EXPECT_EQ(address.find("acks"), nullptr);
}

TEST(KafkaUrl, TakesHostsWithoutPortAddressesOfVersionSixAndATrailingSlash) {
    EXPECT_EQ(parse_kafka_url("kafka://broker").value().servers, "broker");
    EXPECT_EQ(parse_kafka_url("kafka://[::1]:9092").value().servers, "[::1]:9092");
    EXPECT_EQ(parse_kafka_url("kafka://a:1/?linger.ms=0").value().servers, "a:1");
    EXPECT_TRUE(parse_kafka_url("kafka://a:1?").value().properties.empty());
}

TEST(KafkaUrl, DecodesValues) {
    const auto address = parse_kafka_url("kafka://a:1?sasl.password=p%26%3d%25+%2B").value();
    EXPECT_EQ(*address.find("sasl.password"), "p&=%++");
}

TEST(KafkaUrl, SaysWhatIsWrong) {
    EXPECT_THAT(fault("kafka:a:1"), HasSubstr("does not begin with kafka://"));
    EXPECT_THAT(fault("kafka://"), HasSubstr("names no broker"));
    EXPECT_THAT(fault("kafka://a:1,,b:2"), HasSubstr("empty host"));
    EXPECT_THAT(fault("kafka://:9092"), HasSubstr("empty host"));
    EXPECT_THAT(fault("kafka://a:0"), HasSubstr("port"));
    EXPECT_THAT(fault("kafka://a:65536"), HasSubstr("port"));
    EXPECT_THAT(fault("kafka://a:9092x"), HasSubstr("port"));
    EXPECT_THAT(fault("kafka://[::1:9092"), HasSubstr("]"));
    EXPECT_THAT(fault("kafka://a b:1"), HasSubstr("character"));
    EXPECT_THAT(fault("kafka://a:1?linger.ms"), HasSubstr("without a name or a value"));
    EXPECT_THAT(fault("kafka://a:1?=1"), HasSubstr("without a name or a value"));
    EXPECT_THAT(fault("kafka://a:1?linger.ms=1&linger.ms=2"), HasSubstr("sets linger.ms twice"));
    EXPECT_THAT(fault("kafka://a:1?client.id=100%"), HasSubstr("%25"));
    EXPECT_THAT(fault("kafka://a:1?client.id=a%00b"), HasSubstr("percent-encoded"));
    EXPECT_THAT(fault("kafka://a:1?client.id=a#b"), HasSubstr("%23"));
}

TEST(KafkaUrl, ShowsNoSecret) {
    for (const std::string url :
         {"kafka://a:1?sasl.password=hush&linger.ms=1",
          "kafka://a:1?ssl.key.password=hush&ssl.key.pem=hush&sasl.oauthbearer.client.secret=hush",
          "kafka://a:1?sasl%2Epassword=hush",
          "kafka://a:1?sasl.password=x&hush=y&linger.ms=1",
          "kafka://a:1?sasl.password=x&y=hush",
          "kafka://user:hush@a:1",
          "kafka://a:x?ssl.keystore.password=hush",
          "user:hush@a?sasl.password=hush%"}) {
        EXPECT_THAT(shown_kafka_url(url), Not(HasSubstr("hush")));
        const auto parsed = parse_kafka_url(url);
        if (!parsed) {
            EXPECT_THAT(parsed.error().detail, Not(HasSubstr("hush")));
        }
    }
    EXPECT_EQ(
        shown_kafka_url("kafka://a:1?sasl.username=u&sasl.password=p"),
        "kafka://a:1?sasl.username=u&sasl.password=***"
    );
    EXPECT_EQ(
        shown_kafka_url("kafka://a:1?sasl.password=p&q=r&acks=all&linger.ms=1"),
        "kafka://a:1?sasl.password=***&***&acks=all&linger.ms=1"
    ) << "an & that should have been %26";
    const auto* const known = "kafka://a:1?sasl.password=p&sasl.username=u&ssl.ca.location=/etc/ca.pem";
    EXPECT_TRUE(parse_kafka_url(known)) << "properties without a value of their own are known, too";
    EXPECT_EQ(
        shown_kafka_url(known), "kafka://a:1?sasl.password=***&sasl.username=u&ssl.ca.location=/etc/ca.pem"
    );
    EXPECT_THAT(
        parse_kafka_url("kafka://a:1?sasl.password=p&q=r").error().detail,
        HasSubstr("has behind sasl.password what is no property (an & in a value is %26)")
    );
}

}  // namespace
}  // namespace millrace::test
