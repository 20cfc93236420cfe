#include "support/raw_http_server.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace millrace::support {

namespace {

std::string small(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    return text;
}

bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

void parse_head(std::string_view head, seen_request& into) {
    const auto line_end = head.find("\r\n");
    const auto first = head.substr(0, line_end);
    const auto space = first.find(' ');
    into.method = first.substr(0, space);
    into.target = first.substr(space + 1, first.rfind(' ') - space - 1);
    head.remove_prefix(line_end + 2);
    while (!head.empty()) {
        const auto end = head.find("\r\n");
        const auto line = head.substr(0, end);
        head.remove_prefix(end + 2);
        const auto colon = line.find(':');
        const auto value = line.find_first_not_of(' ', colon + 1);
        into.headers[small(std::string(line.substr(0, colon)))] =
            value == std::string_view::npos ? std::string() : std::string(line.substr(value));
    }
}

}  // namespace

std::string http_answer(int status, std::string_view body, std::string_view headers) {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n" + std::string(headers) + "\r\n" + std::string(body);
}

raw_http_server::raw_http_server(handler answer) : answer_(std::move(answer)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || ::bind(listener_, plain, size) != 0 || ::listen(listener_, 1024) != 0 ||
        ::getsockname(listener_, plain, &size) != 0) {
        throw std::runtime_error("the test's HTTP server cannot listen");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
}

raw_http_server::~raw_http_server() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        for (const auto& each : served_)
            ::shutdown(each.socket, SHUT_RDWR);
    }
    ending_.notify_all();
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    for (auto& each : served_) {
        each.thread.join();
        ::close(each.socket);
    }
    ::close(listener_);
}

void raw_http_server::accept_all() {
    for (;;) {
        const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) return;
        const int on = 1;
        ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        const std::lock_guard lock(mutex_);
        if (stop_) {
            ::close(socket);
            return;
        }
        const auto number = ++connections_;
        served_.push_back({socket, std::thread([this, socket, number] { serve(socket, number); })});
    }
}

bool raw_http_server::read_request(int socket, std::string& buffer, seen_request& into) const {
    const auto fill = [&] {
        char bytes[16'384];
        const auto got = ::recv(socket, bytes, sizeof(bytes), 0);
        if (got > 0) buffer.append(bytes, static_cast<std::size_t>(got));
        return got > 0;
    };
    std::size_t head_end = 0;
    while ((head_end = buffer.find("\r\n\r\n")) == std::string::npos) {
        if (!fill()) return false;
    }
    parse_head(std::string_view(buffer).substr(0, head_end + 2), into);
    buffer.erase(0, head_end + 4);
    const auto length = into.header("content-length");
    const std::size_t bytes = length.empty() ? 0 : std::stoull(length);
    while (buffer.size() < bytes) {
        if (!fill()) return false;
    }
    into.body = buffer.substr(0, bytes);
    buffer.erase(0, bytes);
    return true;
}

void raw_http_server::serve(int socket, std::size_t number) {
    const auto open = ++open_;
    for (auto most = most_.load(); most < open && !most_.compare_exchange_weak(most, open);) {
    }
    std::string buffer;
    for (;;) {
        seen_request request;
        if (!read_request(socket, buffer, request)) break;
        request.connection = number;
        request.number = ++requests_;
        const auto answer = answer_(request);
        if (answer.pause.count() > 0) {
            std::unique_lock lock(mutex_);
            ending_.wait_for(lock, answer.pause, [this] { return stop_; });
        }
        if (!send_all(socket, answer.bytes) || answer.close) break;
    }
    --open_;
    ::shutdown(socket, SHUT_RDWR);
}

}  // namespace millrace::support
