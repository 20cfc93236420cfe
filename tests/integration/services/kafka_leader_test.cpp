// Members of a leader group on a real broker: who leads, what is written, how fast another takes over.
#include "kafka_leader.hpp"

#include "event_loop.hpp"
#include "leader/kafka_seat.hpp"
#include "support/fault_proxy.hpp"
#include "support/kafka_topics.hpp"
#include "support/private_servers.hpp"
#include "support/process.hpp"
#include "support/services.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A relay as far as the group sees it: drains at once.
class candidate final : public group_leader_listener {
public:
    candidate(const kafka_leader_options& options) : leader_(std::make_unique<kafka_leader>(loop_, options)) {
        const auto started = leader_->start(*this);
        EXPECT_TRUE(started) << started.error().detail;
        thread_ = std::thread([this] { loop_.run(); });
    }
    ~candidate() override {
        loop_.stop();
        thread_.join();
    }
    candidate(const candidate&) = delete;
    candidate& operator=(const candidate&) = delete;

    [[nodiscard]] bool leads() const { return leads_ && may_act(); }
    [[nodiscard]] bool may_act() const { return loop_.now() < leader_->deadline(); }
    [[nodiscard]] bool others_wait() const { return leader_->others_wait(); }
    [[nodiscard]] int terms() const { return terms_; }

    void give_way() {
        loop_.post([this] { leader_->give_way(); });
    }
    bool stop() {
        loop_.post([this] { leader_->stop([this](const result<void>&) { stopped_ = true; }); });
        return support::eventually(10s, [&] { return stopped_.load(); });
    }
    /// As a killed process: no word to the group.
    void vanish() {
        std::atomic<bool> gone{false};
        loop_.post([&] {
            leader_.reset();
            gone = true;
        });
        EXPECT_TRUE(support::eventually(10s, [&] { return gone.load(); }));
    }

    void chosen() override {
        ++terms_;
        leads_ = true;
    }
    void retire() override {
        leads_ = false;
        leader_->drained();
    }
    void lost(const error&) override { leads_ = false; }

private:
    event_loop loop_;
    std::unique_ptr<kafka_leader> leader_;
    std::atomic<bool> leads_{false};
    std::atomic<bool> stopped_{false};
    std::atomic<int> terms_{0};
    std::thread thread_;
};

struct KafkaLeader : testing::Test {
    /// Brokers allow no session time-out below six seconds.
    [[nodiscard]] kafka_leader_options options(const std::string& name) const {
        return {
            .address = {.servers = support::services().kafka, .properties = {}},
            .group = group,
            .topic = group + ".neli",
            .name = name,
            .heartbeat_timeout = 2s};
    }
    [[nodiscard]] std::vector<std::string> heartbeats() const {
        std::vector<std::string> values;
        for (const auto& record : support::read_topic(support::services().kafka, group + ".neli")) {
            EXPECT_EQ(record.partition, 0);
            EXPECT_FALSE(record.key);
            values.push_back(record.value.value_or(""));
        }
        return values;
    }

    static constexpr auto session = 6s;
    const std::string group = support::unique_name("lead");
};

TEST_F(KafkaLeader, MakesTheTopicLeadsAndWritesHeartbeatsAsGoneliDoes) {
    candidate one(options("relay-1"));
    ASSERT_TRUE(support::eventually(20s, [&] { return one.leads(); }));
    std::this_thread::sleep_for(2s);
    EXPECT_TRUE(one.leads()) << "heartbeats come back";
    ASSERT_TRUE(one.stop());
    EXPECT_FALSE(one.leads());
    const auto written = heartbeats();
    EXPECT_GE(written.size(), 4U);
    EXPECT_LE(written.size(), 12U) << "not ten a second";
    for (const auto& value : written) {
        const auto beat = parse_heartbeat(value);
        ASSERT_TRUE(beat) << value;
        EXPECT_EQ(beat->second, "relay-1");
    }
}

TEST_F(KafkaLeader, AMemberThatJoinsDoesNotUnseatTheLeaderAndTakesOverWhenItLeaves) {
    candidate one(options("relay-1"));
    ASSERT_TRUE(support::eventually(20s, [&] { return one.leads(); }));
    candidate two(options("relay-2"));
    ASSERT_TRUE(support::eventually(20s, [&] { return one.leads() && one.others_wait(); }));
    EXPECT_FALSE(two.leads());
    ASSERT_TRUE(one.stop());
    const auto left = clock::now();
    ASSERT_TRUE(support::eventually(10s, [&] { return two.leads(); }));
    EXPECT_LT(clock::now() - left, 3s) << "a rebalance, no session time-out";
}

TEST_F(KafkaLeader, AMemberThatVanishesIsReplacedWithinTheSessionTimeOutAndASecond) {
    candidate one(options("relay-1"));
    ASSERT_TRUE(support::eventually(20s, [&] { return one.leads(); }));
    candidate two(options("relay-2"));
    ASSERT_TRUE(support::eventually(20s, [&] { return one.leads() && one.others_wait(); }));
    one.vanish();
    const auto gone = clock::now();
    ASSERT_TRUE(support::eventually(20s, [&] { return two.leads(); }));
    EXPECT_LT(clock::now() - gone, session + 1s);
}

TEST_F(KafkaLeader, ALeaderThatGivesWayLeavesTheLeadToTheOtherAndDoesNotTakeItBack) {
    candidate one(options("relay-1"));
    ASSERT_TRUE(support::eventually(20s, [&] { return one.leads(); }));
    candidate two(options("relay-2"));
    ASSERT_TRUE(support::eventually(20s, [&] { return one.leads() && one.others_wait(); }));
    one.give_way();
    ASSERT_TRUE(support::eventually(10s, [&] { return two.leads(); }));
    EXPECT_FALSE(one.leads());
    // It comes back after a session time-out, behind the other.
    ASSERT_TRUE(support::eventually(30s, [&] { return two.leads() && two.others_wait(); }));
    EXPECT_FALSE(one.leads());
}

TEST_F(KafkaLeader, LeadsOnATopicOfSeveralPartitionsWithTheRecordsOfGoharvestInIt) {
    support::kafka_admin admin(support::services().kafka);
    admin.create_topic(group + ".neli", 3);
    std::vector<support::topic_record> old;
    for (int i = 0; i < 50; ++i) {
        support::topic_record record;
        record.value = std::to_string(1'600'000'000'000'000'000 + i) + "%host_17_1600000000";
        old.push_back(record);
    }
    old.back().value = "no heartbeat at all";
    support::write_topic(support::services().kafka, group + ".neli", old);
    candidate one(options("relay-1"));
    ASSERT_TRUE(support::eventually(20s, [&] { return one.leads(); }));
    ASSERT_TRUE(one.stop());
}

/// A goharvest instance, as its group sees it: a plain consumer of librdkafka with the settings of goneli.
class goneli final {
public:
    goneli(const std::string& group) {
        auto* conf = rd_kafka_conf_new();
        const std::pair<const char*, std::string> settings[] = {
            {"bootstrap.servers", support::services().kafka},
            {"group.id", group},
            {"enable.auto.commit", "false"},
            {"session.timeout.ms", "6000"}};
        char why[512];
        for (const auto& [name, value] : settings)
            EXPECT_EQ(rd_kafka_conf_set(conf, name, value.c_str(), why, sizeof why), RD_KAFKA_CONF_OK) << why;
        consumer_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
        rd_kafka_poll_set_consumer(consumer_);
        auto* topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(topics, (group + ".neli").c_str(), RD_KAFKA_PARTITION_UA);
        rd_kafka_subscribe(consumer_, topics);
        rd_kafka_topic_partition_list_destroy(topics);
    }
    ~goneli() {
        rd_kafka_consumer_close(consumer_);
        rd_kafka_destroy(consumer_);
    }
    goneli(const goneli&) = delete;
    goneli& operator=(const goneli&) = delete;

    bool owns_partition_zero() {
        if (auto* message = rd_kafka_consumer_poll(consumer_, 10)) rd_kafka_message_destroy(message);
        rd_kafka_topic_partition_list_t* owned = nullptr;
        rd_kafka_assignment(consumer_, &owned);
        bool found = false;
        for (int i = 0; i < owned->cnt; ++i)
            found = found || owned->elems[i].partition == 0;
        rd_kafka_topic_partition_list_destroy(owned);
        return found;
    }

private:
    rd_kafka_t* consumer_;
};

TEST_F(KafkaLeader, JoinsARunningGoharvestGroupAndTakesOverAndIsReplacedByIt) {
    support::kafka_admin admin(support::services().kafka);
    admin.create_topic(group + ".neli", 1);
    goneli other(group);
    ASSERT_TRUE(support::eventually(20s, [&] { return other.owns_partition_zero(); }));
    candidate one(options("relay-1"));
    ASSERT_TRUE(support::eventually(30s, [&] { return !other.owns_partition_zero() && one.leads(); }));
    ASSERT_TRUE(one.stop());
    EXPECT_TRUE(support::eventually(20s, [&] { return other.owns_partition_zero(); }));
}

TEST_F(KafkaLeader, WithoutABrokerItWaitsAndStops) {
    auto nowhere = options("relay-1");
    nowhere.address.servers = "127.0.0.1:1";
    candidate one(nowhere);
    std::this_thread::sleep_for(300ms);
    EXPECT_FALSE(one.leads());
    EXPECT_TRUE(one.stop());
}

TEST_F(KafkaLeader, OutlivesQuestionsThatABrokerWhichWasAwayNeverAnswered) {
    support::fault_proxy proxy;
    support::private_kafka kafka({}, proxy.port());
    proxy.lead_to(kafka.proxied_port());
    auto with = options("relay-1");
    with.address.servers = "127.0.0.1:" + std::to_string(proxy.port());
    candidate one(with);
    for (int outage = 0; outage < 3; ++outage) {
        ASSERT_TRUE(support::eventually(30s, [&] { return one.leads(); }));
        std::this_thread::sleep_for(1s);
        proxy.refuse();
        proxy.cut();
        std::this_thread::sleep_for(8s);  // beyond the time-outs of its questions
        proxy.accept();
    }
    EXPECT_TRUE(support::eventually(30s, [&] { return one.leads(); }));
    EXPECT_TRUE(one.stop());
}

TEST_F(KafkaLeader, SettingsThatLibrdkafkaDoesNotTakeEndTheStart) {
    auto wrong = options("relay-1");
    wrong.address.properties = {{"no.such.property", "1"}};
    event_loop loop;
    kafka_leader leader(loop, wrong);
    struct silent final : group_leader_listener {
        void chosen() override {}
        void retire() override {}
        void lost(const error&) override {}
    } listener;
    const auto started = leader.start(listener);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, errc::invalid_config);
    EXPECT_NE(started.error().detail.find("no.such.property"), std::string::npos) << started.error().detail;
}

}  // namespace
}  // namespace millrace
