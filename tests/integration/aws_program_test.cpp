// Real programs as credential_process.

#include "credentials/run_program.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <csignal>
#include <stop_token>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace millrace::aws {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using clock = std::chrono::steady_clock;

result<std::string> sh(const std::string& script, program_limits limits = {}) {
    return run_program({"sh", "-c", script}, limits, {});
}

std::string why(const std::string& script, program_limits limits = {}) {
    const auto printed = sh(script, limits);
    if (printed) return "it printed: " + *printed;
    EXPECT_THAT(printed.error().detail, Not(HasSubstr("S3CR3T")));
    return printed.error().detail;
}

TEST(AwsProgram, GivesWhatItPrinted) {
    EXPECT_EQ(sh("printf 'one\\ntwo'"), "one\ntwo");
    EXPECT_EQ(sh("head -c 60000 /dev/zero | tr '\\0' x").value().size(), 60'000U);
}

TEST(AwsProgram, SeesItsArgumentsAsTheyAre) {
    EXPECT_EQ(run_program({"printf", "%s|", "a b", "$HOME", "*", ""}, {}, {}), "a b|$HOME|*||");
}

TEST(AwsProgram, AStatusOtherThanZeroIsAFailureWithoutWhatItSaid) {
    EXPECT_THAT(why("echo S3CR3T; echo S3CR3T >&2; exit 1"), HasSubstr("ended with status 1"));
    EXPECT_THAT(why("kill -9 $$"), HasSubstr("signal 9"));
}

TEST(AwsProgram, WhatItSaysOnStandardErrorGoesNowhere) {
    EXPECT_EQ(sh("head -c 1000000 /dev/zero >&2; echo fine"), "fine\n");
}

TEST(AwsProgram, ItsStandardInputIsEmpty) {
    EXPECT_EQ(sh("cat; echo end"), "end\n");
}

TEST(AwsProgram, WhatHangsIsKilledInTime) {
    const auto begun = clock::now();
    EXPECT_THAT(why("trap '' TERM INT; echo S3CR3T; sleep 60", {300ms, 1'000}), HasSubstr("within 0.3 s"));
    EXPECT_LT(clock::now() - begun, 10s);
}

TEST(AwsProgram, WhatPrintsWithoutAnEndIsKilled) {
    const auto begun = clock::now();
    EXPECT_THAT(why("yes S3CR3T", {30s, 64'000}), HasSubstr("more than 64000 bytes"));
    EXPECT_LT(clock::now() - begun, 10s);
}

TEST(AwsProgram, WhatItStartedIsKilledWithIt) {
    const support::temporary_folder folder;
    EXPECT_THAT(
        why("sleep 60 & echo $! >" + folder.file("pid") + "; wait", {500ms, 1'000}), HasSubstr("was killed")
    );
    const auto pid = std::stoi(support::read_file(folder.path() / "pid"));
    EXPECT_TRUE(support::eventually(10s, [&] {
        const auto state = support::read_file("/proc/" + std::to_string(pid) + "/stat");
        return state.empty() || state.find(") Z") != std::string::npos;
    }));
}

TEST(AwsProgram, IsNotWaitedForLongerBecauseAChildKeepsItsOutputOpen) {
    const auto begun = clock::now();
    EXPECT_EQ(sh("sleep 60 & echo fine", {30s, 1'000}), "fine\n");
    EXPECT_LT(clock::now() - begun, 10s);
}

TEST(AwsProgram, MayCloseItsOutputBeforeItEnds) {
    EXPECT_EQ(sh("echo fine; exec >&-; sleep 0.2"), "fine\n");
}

TEST(AwsProgram, InheritsNoFileAndNoBlockedSignal) {
    const int open = ::fcntl(STDIN_FILENO, F_DUPFD, 100);
    ASSERT_GE(open, 100);
    ::sigset_t term{};
    ::sigset_t before{};
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    auto* const pipe_before = std::signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &term, &before);
    const auto files = sh("test -e /proc/$$/fd/" + std::to_string(open) + " && echo open; echo looked");
    // Not beside the shell, which blocks signals for a moment while it starts a program.
    const auto blocked = sh("exec sed -n 's/^SigBlk:\\t/0x/p' /proc/$$/status");
    const auto ignored = sh("exec sed -n 's/^SigIgn:\\t/0x/p' /proc/$$/status");
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    std::signal(SIGPIPE, pipe_before);
    ::close(open);
    EXPECT_EQ(files.value(), "looked\n");
    EXPECT_EQ(std::stoull(blocked.value(), nullptr, 16), 0U);
    EXPECT_EQ(std::stoull(ignored.value(), nullptr, 16) & 0x7fffffffU, 0U);  // glibc's own are above
}

TEST(AwsProgram, ThatDoesNotExistIsNamedAsAFaultOfTheConfiguration) {
    const auto printed = run_program({"/no/such/program"}, {}, {});
    ASSERT_FALSE(printed);
    EXPECT_EQ(printed.error().code, errc::invalid_config);
    EXPECT_THAT(printed.error().detail, HasSubstr("cannot be run: No such file"));
}

TEST(AwsProgram, IsKilledAtOnceWhenTheProcessStops) {
    std::stop_source stop;
    const auto begun = clock::now();
    std::thread stopper([&] {
        std::this_thread::sleep_for(200ms);
        stop.request_stop();
    });
    const auto printed = run_program({"sleep", "60"}, {30s, 1'000}, stop.get_token());
    stopper.join();
    ASSERT_FALSE(printed);
    EXPECT_EQ(printed.error().code, errc::cancelled);
    EXPECT_LT(clock::now() - begun, 10s);
}

}  // namespace
}  // namespace millrace::aws
