/// An HTTP/1.1 server whose every answer is bytes that a test gives, so that it can answer as no server
/// should.
///
/// It listens on a free port of 127.0.0.1 and has a thread for each connection, on which the handler runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace millrace::support {

struct seen_request {
    std::string method;
    std::string target;
    std::map<std::string, std::string> headers;  ///< Names in small letters.
    std::string body;
    std::size_t connection{0};  ///< Counted from 1.
    std::size_t number{0};      ///< Of the request, over all connections; counted from 1.

    [[nodiscard]] std::string header(const std::string& name) const {
        const auto found = headers.find(name);
        return found == headers.end() ? std::string() : found->second;
    }
};

struct raw_answer {
    std::string bytes;
    std::chrono::milliseconds pause{0};  ///< Before it is sent; ended early by the server's end.
    bool close{false};                   ///< The connection, behind the bytes.
};

/// A well-formed answer. `headers` are lines, each with its line break.
[[nodiscard]] std::string http_answer(int status, std::string_view body, std::string_view headers = {});

class raw_http_server {
public:
    using handler = std::function<raw_answer(const seen_request&)>;

    explicit raw_http_server(handler answer);
    ~raw_http_server();
    raw_http_server(const raw_http_server&) = delete;
    raw_http_server& operator=(const raw_http_server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

    /// So far.
    [[nodiscard]] std::size_t connections() const noexcept { return connections_; }
    [[nodiscard]] std::size_t requests() const noexcept { return requests_; }
    [[nodiscard]] std::size_t connections_at_once() const noexcept { return most_; }

private:
    struct served {
        int socket{-1};
        std::thread thread;
    };

    void accept_all();
    void serve(int socket, std::size_t number);
    [[nodiscard]] bool read_request(int socket, std::string& buffer, seen_request& into) const;

    handler answer_;
    int listener_{-1};
    std::uint16_t port_{0};
    std::atomic<std::size_t> connections_{0};
    std::atomic<std::size_t> requests_{0};
    std::atomic<std::size_t> open_{0};
    std::atomic<std::size_t> most_{0};
    std::mutex mutex_;
    std::condition_variable ending_;
    bool stop_{false};
    std::list<served> served_;
    std::thread thread_;
};

}  // namespace millrace::support
