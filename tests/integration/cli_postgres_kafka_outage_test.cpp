// What a relay between PostgreSQL and Kafka tells while one of them is away, hangs or may not be written.
#include "cli_postgres_kafka.hpp"

#include <string>
#include <thread>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;
using testing::Not;

TEST_F(CliPostgresKafka, AnAbsentBrokerAndADatabaseThatIsAwayAreToldAllTheTimeThatTheyLast) {
    make_outbox();
    put("k", "waits");
    support::fault_proxy way(support::port_of(services().postgres));
    const words to_nobody{
        "relay", "--outbox", outbox_through(way), "--sink", "kafka://127.0.0.1:1", "--lease", "2s"};
    auto command = to_nobody;
    command.insert(command.end(), {"--admin", "127.0.0.1:0"});
    auto running = start(command, "relay");
    ASSERT_TRUE(says("relay", "admin.listening"));
    const auto get = [&, port = admin_port()](const std::string& path) { return page(port, path); };
    ASSERT_TRUE(says("relay", "relay.waits")) << said("relay");
    for (int i = 0; i < 24; ++i) {
        std::this_thread::sleep_for(500ms);
        ASSERT_THAT(get("/readyz"), AllOf(HasSubstr(" 503 "), HasSubstr("127.0.0.1:1"))) << said("relay");
    }
    EXPECT_THAT(said("relay"), Not(HasSubstr("relay.waits_no_more")));
    EXPECT_THAT(get("/status"), Not(HasSubstr("\"relay_last_error\":null")));

    const auto age = [&] { return oldest_age(admin_port()); };
    const auto before = age();
    EXPECT_GT(before, 10.0);
    way.refuse();
    way.cut();
    std::this_thread::sleep_for(8s);
    EXPECT_THAT(get("/metrics"), HasSubstr("millrace_relay_leading 0\n"));
    EXPECT_GT(age(), before + 6.0) << "what waits grows older also where nobody sees it";
    running.ask_to_end();
    ASSERT_TRUE(running.wait(10s));

    way.accept();
    auto once = to_nobody;
    once.insert(once.end(), {"--once", "--yield-after", "4s"});
    const auto gave_up = millrace(once);
    EXPECT_EQ(gave_up.status, 1);
    EXPECT_THAT(gave_up.errors, AllOf(HasSubstr("(id 1)"), HasSubstr("127.0.0.1:1")));
}

TEST_F(CliPostgresKafka, ABrokerThatIsLostUnderWayIsNamedAsSoonAsItsClientKnows) {
    make_outbox();
    support::private_kafka broker;
    support::kafka_admin(broker.bootstrap()).create_topic(topic, 1);
    auto running = start(
        {"relay", "--outbox", outbox(), "--sink", "kafka://" + broker.bootstrap(), "--admin", "127.0.0.1:0"},
        "relay"
    );
    const auto port = Cli::admin_port("relay");
    put("k", "before");
    ASSERT_TRUE(support::eventually(20s, [&] {
        return page(port, "/metrics").find("millrace_relay_deleted_total 1\n") != std::string::npos;
    })) << said("relay");
    broker.kill();
    put("k", "after");
    EXPECT_TRUE(support::eventually(3s, [&] {
        const auto status = page(port, "/status");
        const auto at = status.find("\"relay_last_error\":");
        return at != std::string::npos && status.find(broker.bootstrap(), at) != std::string::npos;
    })) << page(port, "/status");
    EXPECT_TRUE(support::eventually(10s, [&] {
        const auto ready = page(port, "/readyz");
        return ready.find(" 503 ") != std::string::npos &&
               ready.find(broker.bootstrap()) != std::string::npos;
    })) << page(port, "/readyz");
    broker.start();
    EXPECT_TRUE(support::eventually(30s, [&] {
        return page(port, "/status").find("\"relay_last_error\":null") != std::string::npos;
    })) << page(port, "/status");
    running.ask_to_end();
    ASSERT_TRUE(running.wait(10s));
}

TEST_F(CliPostgresKafka, ADatabaseThatDoesNotAnswerIsNamedByLeaderAndWaitingRelayAndWhatWaitsGrowsOlder) {
    make_outbox();
    put("k", "waits");
    ok({"outbox", "pause", "--outbox", outbox()});
    support::fault_proxy way(support::port_of(services().postgres));
    const auto command = [&](const std::string& as) {
        return start(
            {"relay", "--outbox", outbox_through(way), "--sink", sink(), "--admin", "127.0.0.1:0"}, as
        );
    };
    auto leader = command("leader");
    const auto led = Cli::admin_port("leader");
    ASSERT_TRUE(support::eventually(20s, [&] {
        const auto text = page(led, "/metrics");
        return text.find("millrace_relay_leading 1\n") != std::string::npos &&
               text.find("millrace_relay_backlog 1\n") != std::string::npos;
    })) << said("leader");
    auto waiting = command("waiting");
    const auto waits = Cli::admin_port("waiting");
    ASSERT_TRUE(support::eventually(20s, [&] {
        return page(waits, "/readyz").find(" 200 ") != std::string::npos;
    })) << said("waiting");

    way.hold();
    std::this_thread::sleep_for(7s);
    const auto age = [&] { return oldest_age(led); };
    const auto before = age();
    EXPECT_GT(before, 7.0) << page(led, "/metrics");
    for (const auto& one : {led, waits}) {
        EXPECT_THAT(
            page(one, "/readyz"),
            AllOf(HasSubstr(" 503 "), HasSubstr("127.0.0.1:" + std::to_string(way.port())))
        );
        EXPECT_THAT(page(one, "/status"), Not(HasSubstr("\"relay_last_error\":null")));
    }
    std::this_thread::sleep_for(2s);
    EXPECT_GT(age(), before + 1.5) << "what waits grows older also where nobody sees it";
    way.release();
    for (const auto& one : {led, waits}) {
        EXPECT_TRUE(support::eventually(20s, [&] {
            return page(one, "/readyz").find(" 200 ") != std::string::npos;
        })) << page(one, "/readyz");
    }
    for (auto* const one : {&leader, &waiting}) {
        one->ask_to_end();
        ASSERT_TRUE(one->wait(15s));
    }
}

TEST_F(CliPostgresKafka, ALeaderByKafkaNamesADatabaseThatDoesNotAnswer) {
    make_outbox();
    support::fault_proxy way(support::port_of(services().postgres));
    const auto group = support::unique_name("lead");
    auto relay = start(
        {"relay",
         "--outbox",
         outbox_through(way),
         "--sink",
         sink(),
         "--leader",
         "kafka",
         "--leader-group",
         group,
         "--admin",
         "127.0.0.1:0"},
        "leader"
    );
    const auto admin = Cli::admin_port("leader");
    const auto ready = [&] { return page(admin, "/readyz").find(" 200 ") != std::string::npos; };
    ASSERT_TRUE(support::eventually(30s, [&] {
        return ready() && page(admin, "/metrics").find("millrace_relay_leading 1\n") != std::string::npos;
    })) << said("leader");

    way.hold();
    const auto host = "127.0.0.1:" + std::to_string(way.port());
    EXPECT_TRUE(support::eventually(15s, [&] {
        const auto text = page(admin, "/readyz");
        return text.find(" 503 ") != std::string::npos && text.find(host) != std::string::npos;
    })) << page(admin, "/readyz");
    EXPECT_THAT(page(admin, "/status"), Not(HasSubstr("\"relay_last_error\":null")));
    EXPECT_THAT(said("leader"), HasSubstr("relay.waits"));
    way.release();
    EXPECT_TRUE(support::eventually(20s, ready)) << page(admin, "/readyz");
    relay.ask_to_end();
    ASSERT_TRUE(relay.wait(15s));
}

TEST_F(CliPostgresKafka, ARelayEndsAtItsDrainLimitWhereTheBrokerHangs) {
    make_outbox();
    support::private_kafka broker;
    support::kafka_admin(broker.bootstrap()).create_topic(topic, 1);
    for (const words& leader :
         {words{"--leader", "lease"}, words{"--leader", "kafka", "--leader-group", schema}}) {
        words command{
            "relay",
            "--outbox",
            outbox(),
            "--sink",
            "kafka://" + broker.bootstrap(),
            "--drain-limit",
            "4s",
            "--admin",
            "127.0.0.1:0"};
        command.insert(command.end(), leader.begin(), leader.end());
        auto running = start(command, leader[1]);
        const auto port = Cli::admin_port(leader[1]);
        put("k", "before");
        ASSERT_TRUE(support::eventually(30s, [&] {
            return page(port, "/metrics").find("millrace_relay_deleted_total 1\n") != std::string::npos;
        })) << said(leader[1]);
        broker.pause();
        put("k", "after");
        ASSERT_TRUE(support::eventually(20s, [&] {
            return page(port, "/readyz").find(" 503 ") != std::string::npos;
        })) << page(port, "/readyz");
        std::this_thread::sleep_for(1s);
        const auto began = std::chrono::steady_clock::now();
        running.ask_to_end();
        ASSERT_TRUE(running.wait(20s));
        EXPECT_LT(std::chrono::steady_clock::now() - began, 5500ms) << said(leader[1]);
        if (leader[1] == "lease") {
            EXPECT_THAT(said("lease"), HasSubstr("relay.drain"));
        }
        broker.resume();
        ok({"outbox", "stats", "--outbox", outbox()});
        sql.execute("DELETE FROM " + schema + ".outbox");
    }
}

TEST_F(CliPostgresKafka, AStandbyIsNamedAsSuch) {
    support::private_postgres primary;
    ok({"outbox", "init", "--outbox", primary.url()});
    support::private_postgres standby(primary);
    const auto refused =
        millrace({"outbox", "put", "--outbox", standby.url(), "--topic", "t", "--value", "v"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, HasSubstr("standby"));
}

}  // namespace
}  // namespace millrace::cli
