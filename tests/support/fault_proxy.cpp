#include "support/fault_proxy.hpp"

#include "support/process.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace millrace::support {

namespace {

constexpr std::size_t buffer_size = 65536;

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/// On a port below the range that the kernel gives to clients: otherwise a client that dials it while it
/// refuses could be given the port itself, and be connected to itself.
std::uint16_t bind_free_port(int socket) {
    std::mt19937 random{std::random_device{}()};
    std::uniform_int_distribution<std::uint16_t> any{10000, 31999};
    for (int attempts = 0; attempts < 1000; ++attempts) {
        const auto port = any(random);
        const auto address = loopback(port);
        if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return port;
    }
    fail("cannot bind a port");
}

int connect_to(std::uint16_t port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(port);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        ::close(socket);
        return -1;
    }
    return socket;
}

void prepare(int socket) {
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void reset(int& socket) {
    if (socket < 0) return;
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(socket);
    socket = -1;
}

}  // namespace

fault_proxy::fault_proxy(std::uint16_t server_port, ending to_server)
    : to_server_(to_server),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      server_port_(server_port),
      refuses_(server_port == 0) {
    if (listener_ < 0 || wake_ < 0) fail("cannot make a socket");
    const int yes = 1;  // connections that stand do not keep it from listening again
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    port_ = bind_free_port(listener_);
    if (!refuses_ && ::listen(listener_, SOMAXCONN) != 0) fail("cannot listen");
    thread_ = std::thread{[this] { copy(); }};
}

fault_proxy::~fault_proxy() {
    {
        const std::lock_guard lock{mutex_};
        stops_ = true;
        changed();
    }
    thread_.join();
    cut();
    ::close(listener_);
    ::close(wake_);
}

void fault_proxy::lead_to(std::uint16_t server_port) {
    {
        const std::lock_guard lock{mutex_};
        server_port_ = server_port;
    }
    accept();
}

void fault_proxy::end(connection& one) const {
    reset(one.client);
    if (to_server_ == ending::close && one.server >= 0) ::close(std::exchange(one.server, -1));
    reset(one.server);
}

void fault_proxy::cut() {
    const std::lock_guard lock{mutex_};
    for (auto& one : connections_)
        end(one);
    connections_.clear();
    changed();
}

void fault_proxy::hold() {
    const std::lock_guard lock{mutex_};
    hold_ = holding::everything;
    changed();
}

void fault_proxy::strand() {
    const std::lock_guard lock{mutex_};
    for (auto& one : connections_)
        one.stranded = true;
    changed();
}

void fault_proxy::hold_replies() {
    const std::lock_guard lock{mutex_};
    hold_ = holding::replies;
    changed();
}

void fault_proxy::trickle(std::size_t bytes) {
    const std::lock_guard lock{mutex_};
    trickle_ = bytes;
    changed();
}

void fault_proxy::release() {
    const std::lock_guard lock{mutex_};
    hold_ = holding::nothing;
    changed();
}

void fault_proxy::refuse() {
    const std::lock_guard lock{mutex_};
    if (!refuses_) ::shutdown(listener_, SHUT_RDWR);  // no longer listens, and keeps its port
    refuses_ = true;
    changed();
}

void fault_proxy::accept() {
    const std::lock_guard lock{mutex_};
    if (refuses_ && ::listen(listener_, SOMAXCONN) != 0) fail("cannot listen");
    refuses_ = false;
    changed();
}

void fault_proxy::lose_reply(std::string request) {
    const std::lock_guard lock{mutex_};
    reply_lost_ = false;
    to_lose_ = std::move(request);
    for (auto& one : connections_)
        one.last_request.clear();
}

void fault_proxy::lose_some(std::uint32_t of_a_thousand) {
    const std::lock_guard lock{mutex_};
    reply_lost_ = false;
    some_lost_ = of_a_thousand;
}

bool fault_proxy::lost_reply(std::chrono::milliseconds limit) const {
    return eventually(limit, [this] { return reply_lost_.load(); });
}

std::size_t fault_proxy::connections() const {
    const std::lock_guard lock{mutex_};
    return connections_.size();
}

void fault_proxy::changed() {
    ++generation_;
    const std::uint64_t one = 1;
    if (::write(wake_, &one, sizeof one) < 0 && errno != EAGAIN) fail("cannot wake the proxy");
}

void fault_proxy::copy() {
    std::vector<pollfd> polled;
    while (true) {
        std::uint64_t generation = 0;
        bool slowly = false;
        {
            const std::lock_guard lock{mutex_};
            if (stops_) return;
            generation = generation_;
            slowly = trickle_ > 0;
            polled = {{wake_, POLLIN, 0}};
            if (!refuses_ && hold_ != holding::everything) polled.push_back({listener_, POLLIN, 0});
            for (const auto& one : connections_) {
                for (const auto* way : {&one.requests, &one.replies}) {
                    if (way->ended || one.stranded || hold_ == holding::everything) continue;
                    if (way == &one.replies && hold_ == holding::replies) continue;
                    const bool full = way->sent < way->buffer.size();
                    polled.push_back(
                        {full ? way->to : way->from, static_cast<short>(full ? POLLOUT : POLLIN), 0}
                    );
                }
            }
        }
        if (slowly) std::this_thread::sleep_for(std::chrono::milliseconds{20});
        if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) fail("cannot poll");
        std::uint64_t ignored = 0;
        if (::read(wake_, &ignored, sizeof ignored) < 0 && errno != EAGAIN) fail("cannot read the wake-up");

        const std::lock_guard lock{mutex_};
        if (generation != generation_) continue;
        accept_one();
        for (auto one = connections_.begin(); one != connections_.end();) {
            const auto current = one++;
            step(*current);
            if (!current->requests.ended || !current->replies.ended) continue;
            end(*current);
            connections_.erase(current);
        }
    }
}

void fault_proxy::accept_one() {
    if (refuses_ || hold_ == holding::everything) return;
    int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    ++accepted_;
    const int server = connect_to(server_port_);
    if (server < 0) {
        reset(client);
        return;
    }
    prepare(client);
    prepare(server);
    auto& one = connections_.emplace_back();
    one.client = client;
    one.server = server;
    one.requests.from = one.replies.to = client;
    one.requests.to = one.replies.from = server;
}

void fault_proxy::step(connection& one) {
    if (one.stranded || hold_ == holding::everything) return;
    if (!move(one, one.requests)) one.requests.ended = one.replies.ended = true;
    if (hold_ == holding::replies) return;
    if (!move(one, one.replies)) one.requests.ended = one.replies.ended = true;
}

/// Copies what can be copied without waiting; false when the connection is broken.
bool fault_proxy::move(connection& one, channel& way) {
    const bool replies = &way == &one.replies;
    while (!way.ended) {
        if (way.sent == way.buffer.size()) {
            way.buffer.resize(replies && trickle_ > 0 ? trickle_ : buffer_size);
            way.sent = 0;
            const auto count = ::recv(way.from, way.buffer.data(), way.buffer.size(), MSG_DONTWAIT);
            way.buffer.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
            if (count < 0) return errno == EAGAIN;
            if (count == 0) {
                way.ended = true;
                return one.drains || ::shutdown(way.to, SHUT_WR) == 0;
            }
            const bool asked = one.requests.sent == one.requests.buffer.size();
            if (replies && one.next_reply_is_lost && asked) lose(one);
            if (replies && one.drains) way.buffer.clear();
            if (!replies) note_request(one, {way.buffer.data(), way.buffer.size()});
            if (way.buffer.empty()) continue;
        }
        const auto count = ::send(
            way.to, way.buffer.data() + way.sent, way.buffer.size() - way.sent, MSG_DONTWAIT | MSG_NOSIGNAL
        );
        if (count < 0) return errno == EAGAIN;
        way.sent += static_cast<std::size_t>(count);
        if (replies && trickle_ > 0) break;
    }
    return true;
}

void fault_proxy::note_request(connection& one, std::string_view bytes) {
    if (!bytes.empty() && random_() % 1'000 < some_lost_) one.next_reply_is_lost = true;
    if (!to_lose_) return;
    one.last_request += bytes;
    if (one.last_request.find(*to_lose_) != std::string::npos) {
        one.next_reply_is_lost = true;
        to_lose_.reset();
    }
    const auto keep = std::min(one.last_request.size(), to_lose_ ? to_lose_->size() : 0);
    one.last_request.erase(0, one.last_request.size() - keep);
}

/// The server is told that no more comes, rather than cut: so it carries out what it has been sent.
void fault_proxy::lose(connection& one) {
    one.next_reply_is_lost = false;
    one.drains = true;
    one.requests.ended = true;
    reset(one.client);
    ::shutdown(one.server, SHUT_WR);
    reply_lost_ = true;
}

}  // namespace millrace::support
