#include "process_identity.hpp"

#include <csignal>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace {
namespace {

TEST(ProcessIdentity, ReadsTheStartTimeWhateverTheCommandIsCalled) {
    const auto* tail = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 987654 20 21";
    for (const auto* name : {"(millrace)", "(a b)", "(a) R 1 (b)", "()"}) {
        const auto stat = parse_process_stat(std::string("42 ") + name + tail);
        ASSERT_TRUE(stat) << name;
        EXPECT_EQ(stat->state, 'S');
        EXPECT_EQ(stat->start_time, 987654U);
    }
    for (const auto* text : {"", "42", "42 (x)", "42 (x) ", "42 (x) S 1 2 3"}) {
        EXPECT_FALSE(parse_process_stat(text)) << text;
    }
}

TEST(ProcessIdentity, ThisProcessIsNotGone) {
    const auto self = this_process();
    EXPECT_EQ(self.pid, ::getpid());
    EXPECT_GT(self.start_time, 0U);
    EXPECT_FALSE(self.boot_id.empty());
    EXPECT_FALSE(process_gone(self));
}

TEST(ProcessIdentity, APidThatWasUsedAgainBelongsToAProcessThatIsGone) {
    auto earlier = this_process();
    earlier.start_time -= 1;
    EXPECT_TRUE(process_gone(earlier));
}

TEST(ProcessIdentity, ProcessesElsewhereAreNeverTakenForGone) {
    auto other = this_process();
    other.start_time -= 1;
    for (auto field : {&process_identity::boot_id, &process_identity::pid_namespace}) {
        auto elsewhere = other;
        elsewhere.*field = "other";
        EXPECT_FALSE(process_gone(elsewhere));
        elsewhere.*field = "";
        EXPECT_FALSE(process_gone(elsewhere));
    }
}

TEST(ProcessIdentity, AKilledProcessIsGoneEvenBeforeItsParentHasNoticed) {
    auto child = this_process();
    const auto pid = ::fork();
    if (pid == 0) ::_exit(0);
    child.pid = pid;
    siginfo_t info{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(process_gone(child));
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    EXPECT_TRUE(process_gone(child));
}

TEST(ProcessIdentity, AProcessThatEndsWhileItsFileIsOpenLeavesNothingToRead) {
    const auto pid = ::fork();
    if (pid == 0) {
        for (;;)
            ::pause();
    }
    const auto stat = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(stat, 0);
    EXPECT_TRUE(parse_process_stat(read_proc_file(stat)));
    ASSERT_EQ(::lseek(stat, 0, SEEK_SET), 0);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    EXPECT_EQ(read_proc_file(stat), "");
    ::close(stat);
}

TEST(ProcessIdentity, TheDefaultWorkerIdNamesHostAndProcess) {
    process_identity self;
    self.host = "shop-1";
    self.pid = 42;
    EXPECT_EQ(default_worker_id(self, 0xabc).value(), "shop-1-42-00000abc");
}

}  // namespace
}  // namespace millrace
