// Files that are locked, away or full, and a clock that is set, under a running relay and a running consumer:
// it is said why, they go on by themselves, nothing is lost and nothing overtakes.
#include "cli_fixture.hpp"
#include "write_lock.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;

struct CliOutage : Cli {
    void SetUp() override { std::filesystem::create_directory(path("volume")); }
    [[nodiscard]] std::string on(const std::string& volume, const std::string& file) const {
        return path((volume == file ? "volume/" : "") + file + ".db");
    }

    /// The file called `special` lies on the volume.
    void begin(const std::string& special, std::vector<std::string> environment = {}) {
        outbox_ = "sqlite:" + on(special, "outbox");
        streams_ = "local:" + on(special, "streams");
        state_ = "sqlite:" + on(special, "state");
        ok({"outbox", "init", "--outbox", outbox_});
        ok({"stream", "create", "--stream", streams_ + "/orders", "--shards", "1"});
        support::spawn_options options;
        options.environment = std::move(environment);
        options.output = path("relay.out");
        options.errors = path("relay.err");
        relay_.emplace(
            words{
                MILLRACE_PROGRAM,
                "relay",
                "--outbox",
                outbox_,
                "--sink",
                streams_,
                "--lease",
                "1s",
                "--retry-max",
                "200ms"},
            options
        );
        options.output = path("consumer.out");
        options.errors = path("consumer.err");
        consumer_.emplace(
            words{
                MILLRACE_PROGRAM,
                "consume",
                "--stream",
                streams_ + "/orders",
                "--group",
                "g",
                "--state",
                state_,
                "--print",
                "--lease",
                "1s",
                "--checkpoint-every",
                "50ms",
                "--backoff-max",
                "200ms"},
            options
        );
        put();
        delivered();
    }

    support::command_result try_put() {
        std::string lines;
        for (int i = 0; i < 5; ++i)
            lines +=
                "{\"topic\":\"orders\",\"key\":\"k\",\"value\":\"" + std::to_string(written_ + i) + "\"}\n";
        return millrace({"outbox", "put", "--outbox", outbox_}, lines);
    }
    void put() {
        const auto done = try_put();
        ASSERT_EQ(done.status, 0) << done.errors;
        written_ += 5;
    }

    /// The numbers in the order in which they came first; an event that comes again is no fault here.
    [[nodiscard]] std::vector<int> firsts() const {
        std::vector<int> order;
        std::set<int> seen;
        const std::string text = printed("consumer");
        const std::string mark = "\"data\":\"";
        for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += mark.size()) {
            const int number = std::atoi(text.c_str() + at + mark.size());
            if (seen.insert(number).second) order.push_back(number);
        }
        return order;
    }
    void delivered() const {
        std::vector<int> all(static_cast<std::size_t>(written_));
        for (int i = 0; i < written_; ++i)
            all[static_cast<std::size_t>(i)] = i;
        EXPECT_TRUE(support::eventually(20s, [&] { return firsts().size() >= all.size(); }))
            << said("relay") << said("consumer");
        EXPECT_EQ(firsts(), all);
    }
    void end() {
        for (auto* process : {&relay_, &consumer_}) {
            (*process)->ask_to_end();
            const auto ended = (*process)->wait(15s);
            ASSERT_TRUE(ended);
            EXPECT_EQ(ended->status, 0) << said("relay") << said("consumer");
        }
    }

    std::string outbox_;
    std::string streams_;
    std::string state_;
    std::optional<support::process> relay_;
    std::optional<support::process> consumer_;
    int written_{0};
};

TEST_F(CliOutage, ALockedOutboxIsSaidToBeLockedAndTheRelayGoesOn) {
    begin("");
    put();
    {
        const write_lock lock(path("outbox.db"));
        EXPECT_TRUE(says("relay", "session.heartbeat_failed"));
        EXPECT_TRUE(says("relay", "database is locked"));
        EXPECT_TRUE(says("relay", "code=unavailable failing_for="));
    }
    put();
    delivered();
    end();
}

TEST_F(CliOutage, ALockedStateIsSaidToBeLockedAndTheConsumerGoesOn) {
    begin("");
    {
        const write_lock lock(path("state.db"));
        put();
        EXPECT_TRUE(says("consumer", "session.heartbeat_failed"));
        EXPECT_TRUE(says("consumer", "database is locked"));
        EXPECT_TRUE(says("consumer", "code=unavailable failing_for="));
    }
    put();
    delivered();
    end();
}

TEST_F(CliOutage, WhileTheDatabaseIsLockedAStopStillEndsWithinTheDrainLimit) {
    make_outbox();
    make_stream();
    auto consumer = start(
        {"consume", "--stream", stream(), "--group", "g", "--state", state(), "--drain-limit", "1s"},
        "consumer"
    );
    auto relay = start({"relay", "--outbox", outbox(), "--sink", sink(), "--drain-limit", "1s"}, "relay");
    ASSERT_TRUE(says("consumer", "lease.taken"));
    ASSERT_TRUE(says("relay", "lease.taken"));
    const write_lock state_lock(path("state.db"));
    const write_lock outbox_lock(path("shop.db"));
    const auto began = std::chrono::steady_clock::now();
    consumer.ask_to_end();
    relay.ask_to_end();
    for (auto* process : {&consumer, &relay}) {
        const auto ended = process->wait(15s);
        ASSERT_TRUE(ended);
        EXPECT_EQ(ended->status, 0) << said("relay") << said("consumer");
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, 4s) << "a lease time (5 and 10 s) was waited for";
}

TEST_F(CliOutage, ALockedStreamIsSaidToBeLockedAndTheRelayGoesOn) {
    begin("");
    {
        const write_lock lock(path("streams.db"));
        put();
        EXPECT_TRUE(says("relay", "relay.publish_failed"));
        EXPECT_TRUE(says("relay", "database is locked"));
    }
    put();
    delivered();
    end();
}

TEST_F(CliOutage, AStreamWhoseVolumeIsAwayForAWhileLosesNothing) {
    begin("streams");
    std::filesystem::rename(path("volume"), path("away"));
    put();
    EXPECT_TRUE(says("consumer", "shard.read_failing"));
    EXPECT_TRUE(says("relay", "streams.db"));
    std::filesystem::rename(path("away"), path("volume"));
    put();
    delivered();
    EXPECT_THAT(said("consumer"), testing::Not(HasSubstr("shard.finished")))
        << "an outage is no end of a shard";
    end();
}

TEST_F(CliOutage, AnOutboxWhoseVolumeIsAwayForAWhileLosesNothing) {
    begin("outbox");
    put();
    std::filesystem::rename(path("volume"), path("away"));
    EXPECT_TRUE(says("relay", "outbox.db"));
    std::filesystem::rename(path("away"), path("volume"));
    put();
    delivered();
    end();
}

TEST_F(CliOutage, AClockThatIsSetForthAndBackDisturbsNothing) {
    write("shift", "0");
    begin(
        "",
        {"LD_PRELOAD=" MILLRACE_CLOCK_SHIFT,
         "ASAN_OPTIONS=verify_asan_link_order=0",
         "MILLRACE_CLOCK_SHIFT=" + path("shift")}
    );
    for (const char* shift : {"10800", "-10800", "0"}) {
        write("shift", shift);
        put();
        delivered();
    }
    std::vector<std::string> arrivals;
    const std::string text = printed("consumer");
    for (std::size_t at = 0; (at = text.find("\"arrival\":\"", at)) != std::string::npos; ++at)
        arrivals.push_back(text.substr(at + 11, 24));
    EXPECT_EQ(arrivals.size(), static_cast<std::size_t>(written_)) << "none came twice";
    EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end())) << text;
    EXPECT_GT(arrivals.back().substr(0, 13), arrivals.front().substr(0, 13)) << "the clock was not shifted";
    for (const char* process : {"relay", "consumer"})
        EXPECT_THAT(said(process), testing::Not(HasSubstr("session.ended")));
    end();
}

/// A volume of its own, small enough to be filled.
struct CliFullDisk : CliOutage {
    void SetUp() override {
        CliOutage::SetUp();
        ASSERT_TRUE(mount_volume()) << "a small volume cannot be mounted: " << std::strerror(errno)
                                    << "; run this test as root, or let users have namespaces of their own "
                                       "(sysctl kernel.unprivileged_userns_clone=1)";
    }
    /// Seen by this process and its children only. Who may not mount may do so in a user namespace of its
    /// own.
    [[nodiscard]] bool mount_volume() const {
        const auto user = fmt::format("{0} {0} 1", ::geteuid());
        const auto group = fmt::format("{0} {0} 1", ::getegid());
        const bool root = ::geteuid() == 0;
        if (::unshare(root ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
        if (!root) {
            std::ofstream("/proc/self/uid_map") << user;
            std::ofstream("/proc/self/setgroups") << "deny";
            std::ofstream("/proc/self/gid_map") << group;
        }
        return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("none", path("volume").c_str(), "tmpfs", 0, "size=700k") == 0;
    }
    void TearDown() override {
        relay_.reset();
        consumer_.reset();
        ::umount2(path("volume").c_str(), MNT_DETACH);
    }
    void fill() const { (void)shell("cat /dev/zero > volume/fill"); }
    void make_room() const { std::filesystem::remove(path("volume/fill")); }
};

TEST_F(CliFullDisk, WithoutSpaceForTheStreamTheRelaySaysSoAndGoesOn) {
    begin("streams");
    fill();
    put();
    EXPECT_TRUE(says("relay", "is full; make room"));
    make_room();
    put();
    delivered();
    end();
}

TEST_F(CliFullDisk, WithoutSpaceForTheStateTheConsumerSaysSoAndGoesOn) {
    begin("state");
    fill();
    put();
    EXPECT_TRUE(says("consumer", "is full; make room"));
    EXPECT_TRUE(says("consumer", "session.ended"));
    const std::string left_out = "session.heartbeat_failed more=";  // said when the first five are old
    ASSERT_TRUE(says("consumer", left_out));
    const auto log = said("consumer");
    EXPECT_LT(std::stoul(log.substr(log.find(left_out) + left_out.size())), 200U) << "asked in a tight loop";
    EXPECT_LT(log.size(), 100'000U) << "said in a tight loop";
    make_room();
    put();
    delivered();
    end();
}

TEST_F(CliFullDisk, WithoutSpaceForTheOutboxWritersAndTheRelayAreTold) {
    begin("outbox");
    fill();
    const auto refused = try_put();
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, AllOf(HasSubstr("cannot write " + outbox_), HasSubstr("is full; make room")));
    EXPECT_TRUE(says("relay", "is full; make room"));
    make_room();
    put();
    delivered();
    end();
}

}  // namespace
}  // namespace millrace::cli
