#include "cli_fixture.hpp"

#include <array>
#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace millrace::cli {
namespace {

/// A pipe by a name, whose reader is this process and stands still unless it is told to read.
class named_pipe {
public:
    explicit named_pipe(const std::string& path) {
        EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
        fd_ = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        EXPECT_GE(fd_, 0);
    }
    ~named_pipe() { ::close(fd_); }
    named_pipe(const named_pipe&) = delete;
    named_pipe& operator=(const named_pipe&) = delete;

    /// Adds what can be read now.
    void read_into(std::string& text) const {
        std::array<char, 4096> buffer;
        for (ssize_t n = 0; (n = ::read(fd_, buffer.data(), buffer.size())) > 0;)
            text.append(buffer.data(), static_cast<std::size_t>(n));
    }

    void fill() const {
        const std::string page(4096, '#');
        while (::write(fd_, page.data(), page.size()) > 0)
            continue;
    }

private:
    int fd_{-1};
};

TEST_F(Cli, AReaderOfTheLogWhoStandsStillDoesNotHoldUpARelay) {
    make_outbox();
    make_stream();
    const named_pipe log(path("relay.err"));
    auto relay = start(
        {"relay",
         "--outbox",
         outbox(),
         "--sink",
         sink(),
         "--on-poison",
         "park-row",
         "--admin",
         "127.0.0.1:0"},
        "relay"
    );
    std::string text;
    ASSERT_TRUE(support::eventually(std::chrono::seconds{15}, [&] {
        log.read_into(text);
        return text.find("relay.lead") != std::string::npos || text.find("port=") != std::string::npos;
    })) << text;
    const auto at = text.find("port=") + 5;
    const auto port = text.substr(at, text.find_first_not_of("0123456789", at) - at);
    log.fill();

    // What is parked is told of in the log.
    ok({"outbox", "put", "--outbox", outbox()},
       "{\"topic\":\"nowhere\",\"value\":\"1\"}\n{\"topic\":\"orders\",\"value\":\"2\"}\n");
    EXPECT_TRUE(support::eventually(std::chrono::seconds{15}, [&] {
        return get(port, "/metrics").find("millrace_relay_deleted_total 1\n") != std::string::npos;
    })) << get(port, "/status");
    EXPECT_THAT(get(port, "/healthz"), HasSubstr("200 OK"));

    relay.ask_to_end();
    const auto ended = relay.wait(std::chrono::seconds{10});
    ASSERT_TRUE(ended) << "it waits for the reader of its log";
    EXPECT_EQ(ended->status, 0);
}

}  // namespace
}  // namespace millrace::cli
