#include "group/fast_stream.hpp"

#include "group/page.hpp"
#include "record/hash_key.hpp"
#include "support/kinesis_fake/stream_model.hpp"
#include "support/kinesis_fake/wire.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <system_error>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace millrace::bench {

namespace {

using kinesis_fake::find;
using kinesis_fake::value;
using kinesis_fake::value_list;
using kinesis_fake::value_map;
using kinesis_fake::wire_form;

constexpr std::size_t page_shards = 1'000;

[[noreturn]] void failed(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

value text(std::string s) {
    return {std::move(s)};
}

std::string text_of(const value& in, std::string_view name) {
    const auto* found = find(in, name);
    const auto* made = found != nullptr ? std::get_if<std::string>(&found->is) : nullptr;
    return made != nullptr ? *made : "";
}

std::int64_t number_of(const value& in, std::string_view name, std::int64_t otherwise) {
    const auto* found = find(in, name);
    const auto* made = found != nullptr ? std::get_if<std::int64_t>(&found->is) : nullptr;
    return made != nullptr ? *made : otherwise;
}

/// The value of a header, whatever the case of its name.
std::string_view header(std::string_view head, std::string_view name) {
    for (std::size_t at = 0; (at = head.find("\r\n", at)) != std::string_view::npos;) {
        at += 2;
        const auto line = head.substr(at, head.find("\r\n", at) - at);
        const bool same = line.size() > name.size() && line[name.size()] == ':' &&
                          std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
                              return std::tolower(static_cast<unsigned char>(a)) ==
                                     std::tolower(static_cast<unsigned char>(b));
                          });
        if (same) return line.substr(line.find_first_not_of(' ', name.size() + 1));
    }
    return {};
}

/// One request, read from a socket that keeps alive.
struct request {
    std::string operation;
    value body;
};

class request_reader {
public:
    explicit request_reader(int socket) : socket_(socket) {}

    /// False at the end of the connection.
    bool next(request& out) {
        std::size_t end = 0;
        while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
            if (!more()) return false;
        }
        const std::string_view head(in_.data(), end + 2);
        std::size_t size = 0;
        const auto length = header(head, "content-length");
        std::from_chars(length.data(), length.data() + length.size(), size);
        const auto target = header(head, "x-amz-target");
        out.operation = target.substr(target.find('.') + 1);
        while (in_.size() < end + 4 + size) {
            if (!more()) return false;
        }
        const auto body = kinesis_fake::decode(wire_form::cbor, std::string_view(in_).substr(end + 4, size));
        out.body = body.value_or(value{nullptr});
        in_.erase(0, end + 4 + size);
        return true;
    }

private:
    bool more() {
        std::array<char, 16 * 1024> some{};
        const auto count = ::recv(socket_, some.data(), some.size(), 0);
        if (count > 0) in_.append(some.data(), static_cast<std::size_t>(count));
        return count > 0;
    }

    int socket_;
    std::string in_;
};

bool send_all(int socket, std::array<std::string_view, 3> parts) {
    std::array<iovec, 3> left{};
    for (std::size_t i = 0; i < parts.size(); ++i)
        left[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
    for (std::size_t first = 0; first < left.size();) {
        const auto sent = ::writev(socket, &left[first], static_cast<int>(left.size() - first));
        if (sent < 0) return false;
        auto done = static_cast<std::size_t>(sent);
        while (first < left.size() && done >= left[first].iov_len)
            done -= left[first++].iov_len;
        if (first == left.size()) return true;
        left[first] = {static_cast<char*>(left[first].iov_base) + done, left[first].iov_len - done};
    }
    return true;
}

}  // namespace

struct fast_stream::impl {
    explicit impl(fast_stream_options with) : options(with) {
        listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const plain = reinterpret_cast<sockaddr*>(&address);
        if (listener < 0 || ::bind(listener, plain, size) != 0 || ::listen(listener, 128) != 0 ||
            ::getsockname(listener, plain, &size) != 0)
            failed("the stand-in of Kinesis cannot listen");
        port = ntohs(address.sin_port);
        acceptor = std::thread([this] { accept(); });
    }
    ~impl() {
        ::shutdown(listener, SHUT_RDWR);
        acceptor.join();
        for (const int socket : sockets)
            ::shutdown(socket, SHUT_RDWR);
        for (auto& thread : threads)
            thread.join();
        for (const int socket : sockets)
            ::close(socket);
        ::close(listener);
    }
    impl(const impl&) = delete;
    impl& operator=(const impl&) = delete;

    void accept() {
        for (int socket = 0; (socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
            const int on = 1;
            ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            sockets.push_back(socket);
            threads.emplace_back([this, socket] { serve(socket); });
        }
    }

    void serve(int socket) {
        page records(options.reply_records, options.record_bytes);
        request_reader in(socket);
        request what;
        for (bool open = true; open && in.next(what);) {
            if (what.operation == "GetRecords") {
                ++reads;
                open = send_records(socket, records, what.body);
            } else {
                const auto body = kinesis_fake::encode(wire_form::cbor, answer(what));
                open = send_all(socket, {head(body.size()), body, {}});
            }
        }
    }

    bool send_records(int socket, page& records, const value& body) const {
        const auto from = from_iterator(text_of(body, "ShardIterator")).value_or(shard_place{});
        const auto asked = static_cast<std::uint64_t>(number_of(body, "Limit", 10'000));
        const auto there = options.records - std::min(options.records, from.index);
        const auto count = std::min({asked, there, std::uint64_t{options.reply_records}});
        const auto parts = records.render(from, count, count == there ? 0 : 1'000);
        return send_all(socket, {head(parts.head.size() + parts.tail.size()), parts.head, parts.tail});
    }

    [[nodiscard]] std::string head(std::size_t size) const {
        return fmt::format(
            "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-cbor-1.1\r\nDate: {:%a, %d %b %Y %H:%M:%S "
            "GMT}\r\n"
            "Content-Length: {}\r\n\r\n",
            fmt::gmtime(std::time(nullptr)),
            size
        );
    }

    [[nodiscard]] value answer(const request& what) const {
        if (what.operation == "DescribeStreamSummary") {
            return {value_map{
                {"StreamDescriptionSummary",
                 value{value_map{
                     {"StreamName", text("bench")},
                     {"StreamARN", text("arn:aws:kinesis:us-east-1:000000000000:stream/bench")},
                     {"StreamStatus", text("ACTIVE")},
                     {"RetentionPeriodHours", value{std::int64_t{24 * 365}}},
                     {"StreamCreationTimestamp", value{kinesis_fake::moment{1'764'000'000'000}}},
                     {"OpenShardCount", value{std::int64_t{options.shards}}}}}}}};
        }
        if (what.operation == "ListShards") return list(what.body);
        shard_place place;
        const auto shard = text_of(what.body, "ShardId");
        const auto digits = shard.substr(std::min(shard.size(), std::size_t{8}));
        std::from_chars(digits.data(), digits.data() + digits.size(), place.shard);
        const auto type = text_of(what.body, "ShardIteratorType");
        const auto known = from_sequence(text_of(what.body, "StartingSequenceNumber"));
        if (known) place.index = known->index + (type == "AFTER_SEQUENCE_NUMBER" ? 1 : 0);
        if (type == "LATEST") place.index = options.records;
        return {value_map{{"ShardIterator", text(to_iterator(place))}}};
    }

    [[nodiscard]] value list(const value& body) const {
        const auto token = text_of(body, "NextToken");
        std::size_t first = 0;
        std::from_chars(token.data(), token.data() + token.size(), first);
        const auto ranges = split_evenly(options.shards);
        const auto last = std::min<std::size_t>(first + page_shards, options.shards);
        value_list shards;
        for (auto i = first; i < last; ++i) {
            shards.push_back({value_map{
                {"ShardId", text(kinesis_fake::shard_name(static_cast<std::uint32_t>(i)))},
                {"HashKeyRange",
                 value{value_map{
                     {"StartingHashKey", text(ranges[i].from.to_string())},
                     {"EndingHashKey", text(ranges[i].to.to_string())}}}},
                {"SequenceNumberRange",
                 value{value_map{
                     {"StartingSequenceNumber", text(to_sequence({static_cast<std::uint32_t>(i), 0}))}}}}}});
        }
        value_map reply{{"Shards", value{std::move(shards)}}};
        if (last < options.shards) reply.emplace_back("NextToken", text(std::to_string(last)));
        return {std::move(reply)};
    }

    const fast_stream_options options;
    int listener{-1};
    std::uint16_t port{0};
    std::atomic<std::uint64_t> reads{0};
    std::vector<int> sockets;          // of the acceptor until it has ended
    std::vector<std::thread> threads;  // likewise
    std::thread acceptor;
};

fast_stream::fast_stream(fast_stream_options options) : impl_(std::make_unique<impl>(options)) {}

fast_stream::~fast_stream() = default;

std::string fast_stream::endpoint() const {
    return fmt::format("http://127.0.0.1:{}", impl_->port);
}

std::string fast_stream::url() const {
    return fmt::format("kinesis://us-east-1/bench?endpoint={}", endpoint());
}

std::uint64_t fast_stream::reads() const {
    return impl_->reads;
}

}  // namespace millrace::bench
