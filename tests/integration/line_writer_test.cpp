#include "line_writer.hpp"

#include "print_handler.hpp"
#include "support/process.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <stop_token>
#include <string>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace millrace::app {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// A pipe or a pair of sockets whose reader reads when it is told to.
class LineWriter : public testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        std::signal(SIGPIPE, SIG_IGN);
        const bool made = GetParam() ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) == 0
                                     : ::pipe2(ends_.data(), O_CLOEXEC) == 0;
        ASSERT_TRUE(made);
        ASSERT_EQ(::fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
    }
    ~LineWriter() override {
        for (const int fd : ends_)
            ::close(fd);
    }

    [[nodiscard]] int in() const { return ends_[1]; }

    std::string read_all() {
        std::string out;
        std::array<char, 65536> buffer;
        for (ssize_t n = 0; (n = ::read(ends_[0], buffer.data(), buffer.size())) > 0;)
            out.append(buffer.data(), static_cast<std::size_t>(n));
        return out;
    }

    std::array<int, 2> ends_{-1, -1};
};

INSTANTIATE_TEST_SUITE_P(Outputs, LineWriter, testing::Bool(), [](const auto& of) {
    return of.param ? "Socket" : "Pipe";
});

TEST_P(LineWriter, WritesWhatWasAddedInOrderBeforeItEnds) {
    {
        line_writer writer(in(), {});
        for (int i = 0; i < 100; ++i)
            writer.add(std::to_string(i) + "\n");
    }
    const std::string all = read_all();
    EXPECT_EQ(all.find("0\n1\n2\n"), 0u);
    EXPECT_TRUE(all.ends_with("98\n99\n"));
}

TEST_P(LineWriter, AReaderWhoStandsStillHoldsUpNobodyAndTheOldestLinesGo) {
    line_writer writer(in(), {.bytes_max = 100'000, .of_dropped = [](std::uint64_t lines) {
                                  return "dropped " + std::to_string(lines) + "\n";
                              }});
    const auto begun = steady::now();
    const std::string rest(1000, 'x');
    for (int i = 0; i < 2000; ++i)
        writer.add(std::to_string(i) + " " + rest + "\n");
    EXPECT_LT(steady::now() - begun, 5s);
    EXPECT_GT(writer.dropped(), 1000u);
    std::string all;
    ASSERT_TRUE(support::eventually(10s, [&] {
        all += read_all();
        return all.find("\n1999 ") != std::string::npos;
    }));
    std::uint64_t told = 0;
    constexpr std::string_view notice = "dropped ";
    for (auto at = all.find(notice); at != std::string::npos; at = all.find(notice, at + 1))
        told += std::stoull(all.substr(at + notice.size()));
    EXPECT_EQ(told, writer.dropped());
    EXPECT_EQ(all.find("\n1500 "), std::string::npos) << "one of those that were dropped";
}

TEST_P(LineWriter, EndsWithinItsLimitThoughNobodyReads) {
    const auto begun = steady::now();
    {
        line_writer writer(in(), {.bytes_max = 4 << 20, .goodbye = 300ms});
        for (int i = 0; i < 1000; ++i)
            writer.add(std::string(2000, 'x') + "\n");
        writer.flush();
    }
    EXPECT_GE(steady::now() - begun, 300ms);
    EXPECT_LT(steady::now() - begun, 5s);
}

TEST_P(LineWriter, WhatCannotBeWrittenIsDroppedAndCounted) {
    ::close(ends_[0]);
    ends_[0] = -1;
    line_writer writer(in(), {});
    writer.add("nobody will read this\n");
    writer.flush();
    EXPECT_EQ(writer.dropped(), 1u);
}

TEST_P(LineWriter, PrintedRecordsDoNotWaitForTheReaderOnceTheShardIsToBeGivenBack) {
    line_output output(in());
    std::stop_source stop;
    stop.request_stop();
    const auto written = output.write(std::string(1 << 20, 'x'), stop.get_token(), [] { return true; });
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, errc::cancelled);
}

}  // namespace
}  // namespace millrace::app
