#include "support/kinesis_fake/server.hpp"

#include "support/kinesis_fake/signature_check.hpp"
#include "support/kinesis_fake/wire.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/crc.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace millrace::kinesis_fake {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr std::uint64_t request_bytes_max = 16 << 20;
constexpr std::string_view target_prefix = "Kinesis_20131202.";
constexpr std::string_view json_type = "application/x-amz-json-1.1";
constexpr std::string_view cbor_type = "application/x-amz-cbor-1.1";

/// What goes out, to the byte, and when.
struct outgoing {
    std::string bytes;
    milliseconds delay{0};
    bool close{false};
};

std::string http_date(wall_time when) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
    return fmt::format(
        "{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds))
    );
}

std::uint32_t crc32(std::string_view body) {
    boost::crc_32_type sum;
    sum.process_bytes(body.data(), body.size());
    return sum.checksum();
}

std::string lower(std::string_view text) {
    std::string made{text};
    std::ranges::transform(made, made.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    return made;
}

std::string render(
    int status, std::string_view type, std::string_view body, std::uint32_t sum, wall_time now
) {
    return fmt::format(
        "HTTP/1.1 {} {}\r\nx-amzn-RequestId: fake\r\nContent-Type: {}\r\nDate: {}\r\nx-amz-crc32: {}\r\n"
        "Content-Length: {}\r\n\r\n{}",
        status,
        status == 200 ? "OK" : "Refused",
        type,
        http_date(now),
        sum,
        body.size(),
        body
    );
}

}  // namespace

struct server::impl {
    explicit impl(server_options with)
        : options(std::move(with)),
          skew(options.clock_skew.count()),
          model([this] { return now(); }, options.limits),
          faults(options.seed),
          api(model, faults) {}

    [[nodiscard]] wall_time now() const {
        return std::chrono::floor<milliseconds>(std::chrono::system_clock::now()) + milliseconds{skew};
    }

    [[nodiscard]] outgoing answer_to(const signed_request& what, bool plain_target);
    [[nodiscard]] outgoing refuse(wire_form form, const refusal& why);
    [[nodiscard]] outgoing reply(wire_form form, const operation_reply& made);
    void damage(std::string& body);
    void accept();

    const server_options options;
    std::atomic<std::int64_t> skew;  // milliseconds

    mutable std::mutex mutex;  // of all below, up to the context
    stream_model model;
    fault_plan faults;
    operations api;
    std::uint64_t replies{0};

    asio::io_context context{1};
    tcp::acceptor acceptor{context};
    std::thread thread;
};

namespace {

/// Requests of one connection, one after the other; keeps itself alive by the callbacks.
class connection : public std::enable_shared_from_this<connection> {
public:
    using answerer = std::function<outgoing(const signed_request&, bool plain_target)>;

    connection(tcp::socket socket, answerer answer)
        : socket_(std::move(socket)), pause_(socket_.get_executor()), answer_(std::move(answer)) {}

    void next() {
        parser_.emplace();
        parser_->body_limit(request_bytes_max);
        http::async_read(
            socket_,
            buffer_,
            *parser_,
            [self = shared_from_this()](beast::error_code ec, std::size_t) {
                if (!ec) self->answer();
            }
        );
    }

private:
    void answer() {
        const auto& request = parser_->get();
        signed_request what;
        for (const auto& field : request)
            what.headers[lower({field.name_string().data(), field.name_string().size()})] =
                std::string(field.value());
        what.body = request.body();
        out_ = answer_(what, request.method() == http::verb::post && request.target() == "/");
        out_.close = out_.close || !request.keep_alive();
        if (out_.delay == milliseconds{0}) return write();
        pause_.expires_after(out_.delay);
        pause_.async_wait([self = shared_from_this()](beast::error_code ec) {
            if (!ec) self->write();
        });
    }

    void write() {
        asio::async_write(
            socket_,
            asio::buffer(out_.bytes),
            [self = shared_from_this()](beast::error_code ec, std::size_t) {
                if (ec) return;
                if (!self->out_.close) return self->next();
                self->socket_.shutdown(tcp::socket::shutdown_both, ec);
            }
        );
    }

    tcp::socket socket_;
    asio::steady_timer pause_;
    answerer answer_;
    beast::flat_buffer buffer_;
    std::optional<http::request_parser<http::string_body>> parser_;
    outgoing out_;
};

}  // namespace

void server::impl::accept() {
    acceptor.async_accept([this](beast::error_code ec, tcp::socket socket) {
        if (ec) return;
        socket.set_option(tcp::no_delay(true));
        std::make_shared<connection>(
            std::move(socket),
            [this](const signed_request& what, bool plain_target) { return answer_to(what, plain_target); }
        )->next();
        accept();
    });
}

outgoing server::impl::answer_to(const signed_request& what, bool plain_target) {
    const std::lock_guard lock(mutex);
    const auto type = header_of(what, "content-type");
    const auto target = header_of(what, "x-amz-target");
    const bool known_type = type == json_type || (type == cbor_type && options.speaks_cbor);
    if (!plain_target || !known_type || !target.starts_with(target_prefix)) {
        const std::string page = "<UnknownOperationException/>\n";
        return {render(404, "text/xml", page, crc32(page), now())};
    }
    const auto form = type == cbor_type ? wire_form::cbor : wire_form::json;
    if (const auto refused = check_signature(what, options.secret, now())) return refuse(form, *refused);
    const auto request = decode(form, what.body);
    if (!request) return refuse(form, {"SerializationException", "The body cannot be read."});
    return reply(form, api.call(target.substr(target_prefix.size()), *request));
}

/// The type with its namespace or without, by turns: both are seen.
outgoing server::impl::refuse(wire_form form, const refusal& why) {
    const bool plain = ++replies % 2 == 0;
    value_map body{{"__type", value{(plain ? "" : "com.amazonaws.kinesis.v20131202#") + why.type}}};
    if (!why.message.empty()) body.emplace_back(plain ? "message" : "Message", value{why.message});
    const auto text = encode(form, value{std::move(body)}, plain);
    return {render(why.status, form == wire_form::cbor ? cbor_type : json_type, text, crc32(text), now())};
}

outgoing server::impl::reply(wire_form form, const operation_reply& made) {
    outgoing out;
    if (made.with.what == fault::overloaded) {
        const std::string page = "<html><body>503 Service Unavailable</body></html>\n";
        out.bytes = render(503, "text/html", page, crc32(page), now());
    } else if (!made.body) {
        out = refuse(form, made.body.error());
    } else {
        auto text = encode(form, *made.body, ++replies % 2 == 0);
        auto sum = crc32(text);
        if (made.with.what == fault::garbled || made.with.what == fault::wrong_checksum) damage(text);
        if (made.with.what == fault::garbled) sum = crc32(text);
        out.bytes = render(200, form == wire_form::cbor ? cbor_type : json_type, text, sum, now());
        if (made.with.what == fault::cut) out.bytes.resize(out.bytes.size() - text.size() / 2 - 1);
    }
    if (made.with.what == fault::silent) out.bytes.clear();
    out.close = made.with.what == fault::cut || made.with.what == fault::silent;
    out.delay = made.with.delay;
    return out;
}

/// Always at the first byte, so that the reply cannot be read, and at others.
void server::impl::damage(std::string& body) {
    if (body.empty()) return;
    body.front() = '\x1c';  // reserved in CBOR, no JSON
    for (int i = 0; i < 4; ++i)
        body[faults.below(body.size())] ^= '\x55';
    body.front() = '\x1c';
}

server::server(server_options options) : impl_(std::make_unique<impl>(std::move(options))) {
    const tcp::endpoint endpoint{asio::ip::address_v4::loopback(), 0};
    impl_->acceptor.open(endpoint.protocol());
    impl_->acceptor.bind(endpoint);
    impl_->acceptor.listen();
    impl_->accept();
    impl_->thread = std::thread([context = &impl_->context] { context->run(); });
}

server::~server() {
    impl_->context.stop();
    impl_->thread.join();
}

std::uint16_t server::port() const {
    return impl_->acceptor.local_endpoint().port();
}

std::string server::endpoint() const {
    return fmt::format("http://127.0.0.1:{}", port());
}

std::string server::url(const std::string& stream) const {
    return fmt::format("kinesis://us-east-1/{}?endpoint={}", stream, endpoint());
}

std::string server::sink_url() const {
    return fmt::format("kinesis://us-east-1?endpoint={}", endpoint());
}

void server::with(const std::function<void(inside)>& what) {
    const std::lock_guard lock(impl_->mutex);
    what({impl_->model, impl_->faults});
}

std::uint64_t server::requests(const std::string& operation, const std::string& shard) const {
    const std::lock_guard lock(impl_->mutex);
    std::uint64_t sum = 0;
    for (const auto& [what, count] : impl_->api.counts()) {
        if (what.first == operation && (shard.empty() || what.second == shard)) sum += count;
    }
    return sum;
}

std::uint64_t server::faults_drawn() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->faults.drawn();
}

void server::shift_clock(milliseconds by) {
    impl_->skew += by.count();
}

}  // namespace millrace::kinesis_fake
