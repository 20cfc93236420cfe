#include "support/fault_proxy.hpp"

#include "support/process.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace millrace::support {
namespace {

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/// A socket that is closed at the end; reads wait for at most `limit`.
class endpoint {
public:
    explicit endpoint(int socket) : socket_(socket) {}
    endpoint(endpoint&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
    endpoint(const endpoint&) = delete;
    endpoint& operator=(const endpoint&) = delete;
    endpoint& operator=(endpoint&&) = delete;
    ~endpoint() {
        if (socket_ >= 0) ::close(socket_);
    }

    [[nodiscard]] bool connected() const { return socket_ >= 0; }

    void write(const std::string& text) const {
        EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    }

    /// Exactly so many bytes; less when the connection ends.
    [[nodiscard]] std::string read(std::size_t size) const {
        std::string text(size, '\0');
        std::size_t got = 0;
        while (got < size && readable(std::chrono::seconds{10})) {
            const auto count = ::recv(socket_, text.data() + got, size - got, 0);
            if (count <= 0) break;
            got += static_cast<std::size_t>(count);
        }
        text.resize(got);
        return text;
    }

    [[nodiscard]] bool readable(std::chrono::milliseconds limit) const {
        pollfd one{socket_, POLLIN, 0};
        return ::poll(&one, 1, static_cast<int>(limit.count())) == 1;
    }

    /// Ended by a reset, not by an orderly end.
    [[nodiscard]] bool is_reset() const {
        char byte = 0;
        return readable(std::chrono::seconds{10}) && ::recv(socket_, &byte, 1, 0) < 0 && errno == ECONNRESET;
    }

    [[nodiscard]] bool has_ended() const {
        char byte = 0;
        return readable(std::chrono::seconds{10}) && ::recv(socket_, &byte, 1, 0) == 0;
    }

    void end_output() const { ::shutdown(socket_, SHUT_WR); }

private:
    int socket_;
};

endpoint dial(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(port);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return endpoint{socket};
    ::close(socket);
    return endpoint{-1};
}

class FaultProxy : public testing::Test {
protected:
    FaultProxy() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        auto address = loopback(0);
        socklen_t size = sizeof address;
        EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
        EXPECT_EQ(::listen(listener_, 16), 0);
        EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
        proxy_.lead_to(ntohs(address.sin_port));
    }
    ~FaultProxy() override { ::close(listener_); }

    [[nodiscard]] endpoint accepted() const {
        pollfd one{listener_, POLLIN, 0};
        return endpoint{
            ::poll(&one, 1, 10'000) == 1 ? ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC) : -1};
    }

    int listener_;
    fault_proxy proxy_;
};

TEST_F(FaultProxy, CopiesBothWaysAndPassesTheEndOn) {
    const auto client = dial(proxy_.port());
    const auto server = accepted();
    client.write("question");
    EXPECT_EQ(server.read(8), "question");
    server.write("answer");
    EXPECT_EQ(client.read(6), "answer");
    client.end_output();
    EXPECT_TRUE(server.has_ended());
    server.write("last");
    EXPECT_EQ(client.read(4), "last");
    server.end_output();
    EXPECT_TRUE(client.has_ended());
    EXPECT_TRUE(eventually(std::chrono::seconds{10}, [&] { return proxy_.connections() == 0; }));
    EXPECT_EQ(proxy_.accepted(), 1U);
}

TEST_F(FaultProxy, PassesMoreThanItsBuffersHold) {
    const auto client = dial(proxy_.port());
    const auto server = accepted();
    std::string text(8 << 20, 'x');
    text.back() = 'y';
    std::thread writer{[&] { client.write(text); }};
    EXPECT_EQ(server.read(text.size()), text);
    writer.join();
}

TEST_F(FaultProxy, CutsEveryConnectionAndAcceptsNewOnes) {
    const auto client = dial(proxy_.port());
    const auto server = accepted();
    client.write("a");
    EXPECT_EQ(server.read(1), "a");
    proxy_.cut();
    EXPECT_TRUE(client.is_reset());
    EXPECT_TRUE(server.is_reset());
    const auto again = dial(proxy_.port());
    const auto server_again = accepted();
    again.write("b");
    EXPECT_EQ(server_again.read(1), "b");
}

TEST_F(FaultProxy, HoldsEverythingBackUntilItIsReleased) {
    const auto client = dial(proxy_.port());
    const auto server = accepted();
    proxy_.hold();
    client.write("a");
    const auto late = dial(proxy_.port());
    EXPECT_TRUE(late.connected());
    late.write("b");
    EXPECT_FALSE(server.readable(std::chrono::milliseconds{50}));
    EXPECT_EQ(proxy_.accepted(), 1U);
    proxy_.release();
    EXPECT_EQ(server.read(1), "a");
    EXPECT_EQ(accepted().read(1), "b");
}

TEST_F(FaultProxy, HoldsOnlyRepliesBack) {
    const auto client = dial(proxy_.port());
    const auto server = accepted();
    proxy_.hold_replies();
    client.write("question");
    EXPECT_EQ(server.read(8), "question");
    server.write("answer");
    EXPECT_FALSE(client.readable(std::chrono::milliseconds{50}));
    proxy_.release();
    EXPECT_EQ(client.read(6), "answer");
}

TEST_F(FaultProxy, RefusesNewConnectionsAndKeepsThoseThatStand) {
    const auto client = dial(proxy_.port());
    const auto server = accepted();
    proxy_.refuse();
    EXPECT_FALSE(dial(proxy_.port()).connected());
    client.write("a");
    EXPECT_EQ(server.read(1), "a");
    proxy_.accept();
    const auto again = dial(proxy_.port());
    EXPECT_TRUE(again.connected());
    EXPECT_TRUE(accepted().connected());
}

TEST_F(FaultProxy, LosesExactlyOneReplyToTheRequestThatIsNamed) {
    const auto other = dial(proxy_.port());
    const auto server_of_other = accepted();
    const auto client = dial(proxy_.port());
    const auto server = accepted();
    proxy_.lose_reply("DELETE");
    client.write("SELECT");
    EXPECT_EQ(server.read(6), "SELECT");
    server.write("rows");
    EXPECT_EQ(client.read(4), "rows");
    EXPECT_FALSE(proxy_.lost_reply(std::chrono::milliseconds{0}));

    client.write("DEL");
    EXPECT_EQ(server.read(3), "DEL");
    client.write("ETE");
    EXPECT_EQ(server.read(3), "ETE");
    server.write("done");
    EXPECT_TRUE(client.is_reset());
    EXPECT_TRUE(proxy_.lost_reply());
    EXPECT_TRUE(server.has_ended());

    other.write("DELETE");
    EXPECT_EQ(server_of_other.read(6), "DELETE");
    server_of_other.write("done");
    EXPECT_EQ(other.read(4), "done");
}

TEST_F(FaultProxy, ResetsAClientWhoseServerIsGone) {
    ::shutdown(listener_, SHUT_RDWR);
    const auto client = dial(proxy_.port());
    EXPECT_TRUE(client.is_reset());
}

}  // namespace
}  // namespace millrace::support
