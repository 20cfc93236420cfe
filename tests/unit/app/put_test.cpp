#include "put.hpp"

#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace millrace::app {
namespace {

/// Its text is standard input as long as it lives.
class standard_input {
public:
    explicit standard_input(const std::string& text) : before_(::dup(STDIN_FILENO)), file_(std::tmpfile()) {
        std::fputs(text.c_str(), file_);
        std::rewind(file_);
        ::dup2(::fileno(file_), STDIN_FILENO);
    }
    ~standard_input() {
        ::dup2(before_, STDIN_FILENO);
        ::close(before_);
        std::fclose(file_);
    }
    standard_input(const standard_input&) = delete;
    standard_input& operator=(const standard_input&) = delete;

private:
    int before_;
    std::FILE* file_;
};

std::string said_of(const error& why, std::vector<given_value> flags, const std::string& input) {
    const standard_input in(input);
    faults found;
    const settings values = settings::resolve(*find_command("outbox put"), {}, flags, false, found);
    testing::internal::CaptureStderr();
    const auto status =
        run_put(values, {}, [&](std::span<const event>) -> result<void> { return tl::unexpected(why); }, {});
    EXPECT_EQ(status, exit_status::failed);
    return testing::internal::GetCapturedStderr();
}

const error lost_reply{errc::unavailable, retry_advice::after_delay, true, "the connection was lost"};
const std::string two_lines = "{\"topic\":\"t\",\"value\":\"1\"}\n{\"topic\":\"t\",\"value\":\"2\"}\n";

TEST(Put, WhatMayBeWrittenIsNotSaidToBeLost) {
    EXPECT_EQ(
        said_of(lost_reply, {}, two_lines),
        "millrace: it is not known whether lines 1 to 2 were written; look before you send them again: the "
        "connection was lost\n"
    );
    EXPECT_EQ(
        said_of(lost_reply, {{"topic", "t", "t", ""}, {"value", "1", "1", ""}}, ""),
        "millrace: it is not known whether the event was written; look before you send it again: the "
        "connection was lost\n"
    );
}

TEST(Put, WhatWasRefusedWasNotWritten) {
    auto refused = lost_reply;
    refused.in_doubt = false;
    EXPECT_EQ(
        said_of(refused, {}, two_lines), "millrace: lines 1 to 2 were not written: the connection was lost\n"
    );
}

}  // namespace
}  // namespace millrace::app
