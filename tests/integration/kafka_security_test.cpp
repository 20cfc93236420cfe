// TLS, client certificates and SASL PLAIN against the real broker, by the sink.

#include "contract/loop_host.hpp"
#include "kafka_sink.hpp"
#include "support/kafka_published.hpp"
#include "support/services.hpp"

#include <string>

#include <gmock/gmock.h>

namespace millrace::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string ssl(const std::string& ca) {
    const auto& s = support::services();
    return "kafka://" + s.kafka_ssl + "?security.protocol=ssl&ssl.ca.location=" + (s.tls / ca).string();
}

std::string plain(const std::string& user, const std::string& password) {
    return "kafka://" + support::services().kafka_sasl +
           "?security.protocol=sasl_plaintext&sasl.mechanism=PLAIN&sasl.username=" + user +
           "&sasl.password=" + password;
}

error refusal_of(const std::string& url) {
    loop_host loop;
    const auto sink = kafka_sink::open(loop, parse_kafka_url(url).value()).value();
    const auto outcome = loop.await<void>([&](auto done) { sink->look(std::move(done)); });
    EXPECT_FALSE(outcome);
    return outcome ? error{} : outcome.error();
}

TEST(KafkaSecurity, PublishesOverTlsAndWithAClientCertificate) {
    const auto& tls = support::services().tls;
    expect_published(ssl("ca.crt"));
    expect_published(
        ssl("ca.crt") + "&ssl.certificate.location=" + (tls / "client.crt").string() +
        "&ssl.key.location=" + (tls / "client.key").string()
    );
}

TEST(KafkaSecurity, RefusesABrokerThatAnotherAuthoritySigned) {
    const auto why = refusal_of(ssl("other-ca.crt"));
    EXPECT_EQ(why.code, errc::permission_denied) << why.detail;
    EXPECT_THAT(why.detail, HasSubstr("certificate verify failed"));
}

TEST(KafkaSecurity, PublishesWithSaslPlain) {
    expect_published(plain("alice", "alice-secret"));
}

TEST(KafkaSecurity, NamesAWrongPasswordWithoutShowingIt) {
    const auto why = refusal_of(plain("alice", "hush"));
    EXPECT_EQ(why.code, errc::permission_denied) << why.detail;
    EXPECT_THAT(why.detail, Not(HasSubstr("hush")));
    EXPECT_THAT(why.detail, HasSubstr("sasl.*"));
}

/// What the sink shows some time after it first failed: its later looks only hear of lost connections.
std::string trouble_of(const std::string& url) {
    loop_host loop;
    const auto sink = kafka_sink::open(loop, parse_kafka_url(url).value()).value();
    const auto batch = std::make_shared<row_batch>();
    outbox_row row;
    row.topic = "anywhere";
    row.value = "v";
    batch->add(row);
    sink->publish(channel::main, {{&batch->rows()[0], batch}}, epoch{1}, [](const auto&) {});
    for (int i = 0; i < 300 && !sink->trouble(); ++i)
        loop.run_for(milliseconds{50});
    loop.run_for(milliseconds{4'000});
    return sink->trouble() ? sink->trouble()->detail : std::string{};
}

TEST(KafkaSecurity, AWrongPasswordIsShownAsLongAsItIsTheCause) {
    const auto shown = trouble_of(plain("alice", "hush"));
    EXPECT_THAT(shown, HasSubstr("uthentication failed"));
    EXPECT_EQ(shown.find("Kafka at"), shown.rfind("Kafka at")) << shown;
    EXPECT_THAT(shown, Not(HasSubstr("hush")));
}

TEST(KafkaSecurity, AnUnknownAuthorityIsShownAsLongAsItIsTheCause) {
    EXPECT_THAT(trouble_of(ssl("other-ca.crt")), HasSubstr("certificate verify failed"));
}

TEST(KafkaSecurity, NamesTheFileOfAnAuthorityThatCanNotBeRead) {
    EXPECT_THAT(refusal_of(ssl("no-such.crt")).detail, HasSubstr("no-such.crt"));
}

TEST(KafkaSecurity, LooksAtATopic) {
    loop_host loop;
    const auto sink =
        kafka_sink::open(loop, parse_kafka_url("kafka://" + support::services().kafka).value()).value();
    EXPECT_TRUE(loop.await<void>([&](auto done) { sink->look(std::move(done)); }));
    const auto missing = support::unique_name("kafka_nowhere");
    const auto looked = loop.await<void>([&](auto done) { sink->look(std::move(done), missing); });
    ASSERT_FALSE(looked);
    EXPECT_EQ(looked.error().code, errc::refused_topic);
    EXPECT_THAT(looked.error().detail, HasSubstr(missing));
}

}  // namespace
}  // namespace millrace::test
