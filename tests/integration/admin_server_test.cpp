// The admin server against clients that connect and say nothing.

#include "admin_server.hpp"

#include "unit/remembered_log.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace millrace::test {
namespace {

class client {
public:
    explicit client(int port) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<std::uint16_t>(port));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval limit{5, 0};
        (void)setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    }
    client(client&& other) noexcept
        : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    client& operator=(client&&) = delete;
    ~client() {
        if (socket_ >= 0) close(socket_);
    }
    std::string ask(const std::string& path) {
        const auto request = "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n";
        if (!connected_ || send(socket_, request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
        std::string answer;
        std::array<char, 4096> some{};
        for (ssize_t n = 0; (n = recv(socket_, some.data(), some.size(), 0)) > 0;)
            answer.append(some.data(), static_cast<std::size_t>(n));
        return answer;
    }

private:
    int socket_{socket(AF_INET, SOCK_STREAM, 0)};
    bool connected_{false};
};

TEST(AdminServer, AnswersAlthoughManyConnectAndSayNothing) {
    const app::service about(app::service::kind::relay);
    remembered_log log;
    const auto server = app::admin_server::start({"127.0.0.1", 0}, about, log).value();
    const auto line = log.of("admin.listening").at(0);
    const auto port = std::stoi(line.substr(line.find("port=") + 5));
    std::vector<client> silent;
    for (int i = 0; i < 100; ++i)
        silent.emplace_back(port);
    for (int i = 0; i < 3; ++i)
        EXPECT_NE(client(port).ask("/healthz").find("200 OK"), std::string::npos);
}

}  // namespace
}  // namespace millrace::test
