#include "unit/runtime/refusal.hpp"

namespace millrace::test {
namespace {

TEST(Url, AKafkaAddressIsOneOfASinkOrOfATopicForDeadLetters) {
    const auto sink = parse_url("kafka://b1:9092,b2:9092?sasl.password=secret", url_role::sink);
    ASSERT_TRUE(sink) << sink.error().detail;
    EXPECT_EQ(sink->given, "kafka://b1:9092,b2:9092?sasl.password=***");
    EXPECT_EQ(sink->path, "kafka://b1:9092,b2:9092?sasl.password=secret");
    const auto letters = parse_url("kafka://b:9092/dead?client.id=x", url_role::dead_letters);
    ASSERT_TRUE(letters) << letters.error().detail;
    EXPECT_EQ(letters->path, "kafka://b:9092?client.id=x");
    EXPECT_EQ(letters->stream, "dead");
    EXPECT_TRUE(contains(refusal("kafka://b:9092", url_role::dead_letters), "names no topic"));
    EXPECT_TRUE(contains(refusal("kafka://b:9092", url_role::stream), "of no use here"));
}

TEST(Url, AFaultOfAKafkaAddressIsNamedWithoutTheSecret) {
    for (const auto* const wrong :
         {"kafka://b:9092?sasl.pasword=secret",
          "kafka://user:secret@b:9092",
          "kafka://user:top@secret@b:9092",
          "kafka://user:secret?x@b:9092",
          "kafka://user:top?secret@b:9092",
          "kafka://b:9092?sasl.password=top&secret",
          "kafka://b:99999?sasl.password=secret",
          "kafka://b:9092?enable.idempotence=false&sasl.password=secret"}) {
        const auto parsed = parse_url(wrong, url_role::sink);
        ASSERT_FALSE(parsed) << wrong;
        EXPECT_FALSE(contains(parsed.error().detail, "secret")) << parsed.error().detail;
    }
}

}  // namespace
}  // namespace millrace::test
