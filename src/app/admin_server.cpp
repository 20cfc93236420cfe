#include "admin_server.hpp"

#include "text/nearest.hpp"
#include "units.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <optional>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace millrace::app {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr std::size_t connections_max = 32;
constexpr std::uint32_t request_bytes_max = 8 * 1024;
constexpr std::chrono::seconds request_limit{10};

std::string prometheus_text(const service& about) {
    std::vector<prometheus::MetricFamily> families;
    for (const metric& m : about.metrics()) {
        if (m.samples.empty()) continue;
        prometheus::MetricFamily family;
        family.name = m.name;
        family.help = m.help;
        family.type = m.counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
        for (const metric::sample& s : m.samples) {
            prometheus::ClientMetric value;
            for (const auto& [name, text] : s.labels)
                value.label.push_back({name, text});
            if (m.counter)
                value.counter.value = s.value;
            else
                value.gauge.value = s.value;
            family.metric.push_back(std::move(value));
        }
        families.push_back(std::move(family));
    }
    return prometheus::TextSerializer{}.Serialize(families);
}

class connection;

/// The connections that are open, the oldest first.
using connections = std::list<connection*>;

/// One request and its answer; keeps itself alive by the callbacks.
class connection : public std::enable_shared_from_this<connection> {
public:
    connection(tcp::socket socket, const service& about, connections& open)
        : stream_(std::move(socket)), about_(about), open_(open), at_(open.insert(open.end(), this)) {
        parser_.header_limit(request_bytes_max);
        parser_.body_limit(request_bytes_max);
    }
    ~connection() { open_.erase(at_); }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    void run() {
        stream_.expires_after(request_limit);
        http::async_read(
            stream_,
            buffer_,
            parser_,
            [self = shared_from_this()](beast::error_code ec, std::size_t) {
                if (!ec) self->answer();
            }
        );
    }

    /// It has not sent a whole request: nobody loses an answer.
    [[nodiscard]] bool is_idle() const noexcept { return !answering_; }

    [[nodiscard]] bool is_closing() const noexcept { return closing_; }

    void close() {
        closing_ = true;
        stream_.cancel();
    }

private:
    void answer() {
        answering_ = true;
        const auto& request = parser_.get();
        const bool head = request.method() == http::verb::head;
        const std::string_view target{request.target().data(), request.target().size()};
        admin_answer found = answer_admin(target.substr(0, target.find('?')), about_);
        if (!head && request.method() != http::verb::get) found = {405, "text/plain", "only GET\n"};
        response_.version(11);
        response_.result(found.status);
        response_.set(http::field::content_type, found.content_type);
        response_.set(http::field::connection, "close");
        response_.keep_alive(false);
        response_.content_length(found.body.size());
        if (!head) response_.body() = std::move(found.body);
        http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code, std::size_t) {
            beast::error_code ignored;
            self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
        });
    }

    beast::tcp_stream stream_;
    const service& about_;
    connections& open_;
    connections::iterator at_;
    bool answering_{false};
    bool closing_{false};
    beast::flat_buffer buffer_{2 * request_bytes_max};
    http::request_parser<http::string_body> parser_;
    http::response<http::string_body> response_;
};

}  // namespace

result<admin_address> parse_admin_address(std::string_view text) {
    const auto wrong = [&](std::string_view why) {
        return fail(
            errc::invalid_argument,
            fmt::format("{} {}; write HOST:PORT, such as 127.0.0.1:9464", in_quotes(text), why)
        );
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return wrong("has no port");
    const auto port = parse_count(text.substr(colon + 1));
    if (!port || *port > 65'535) return wrong("has no port from 0 to 65535");
    std::string host{text.substr(0, colon)};
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    if (host.empty() || host == "localhost") host = "127.0.0.1";
    boost::system::error_code ec;
    asio::ip::make_address(host, ec);
    if (ec) return wrong("has a host that is no numeric address");
    return admin_address{std::move(host), static_cast<std::uint16_t>(*port)};
}

admin_answer answer_admin(std::string_view path, const service& about) {
    constexpr std::array<std::string_view, 4> paths{"/healthz", "/readyz", "/status", "/metrics"};
    if (path == "/healthz") {
        const std::string why = about.not_healthy();
        if (why.empty()) return {200, "text/plain", "ok\n"};
        return {503, "text/plain", fmt::format("not healthy: {}\n", why)};
    }
    if (path == "/readyz") {
        const std::string why = about.not_ready();
        if (why.empty()) return {200, "text/plain", "ready\n"};
        return {503, "text/plain", fmt::format("not ready: {}\n", why)};
    }
    if (path == "/status") return {200, "application/json", about.status_json()};
    if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(about)};
    return {404, "text/plain", fmt::format("there is no such page{}\n", did_you_mean(path, paths))};
}

struct admin_server::impl {
    explicit impl(const service& what) : about(what) {}

    void accept() {
        acceptor.async_accept([this](beast::error_code ec, tcp::socket socket) {
            if (ec == asio::error::operation_aborted) return;
            if (!ec && make_room()) std::make_shared<connection>(std::move(socket), about, open)->run();
            if (!ec) return accept();
            // Out of descriptors or the like: wait, or this would spin.
            pause.expires_after(std::chrono::milliseconds{100});
            pause.async_wait([this](beast::error_code stopped) {
                if (!stopped) accept();
            });
        });
    }

    /// Whoever asks is served rather than whoever says nothing. The one that is closed goes in a moment.
    bool make_room() {
        if (open.size() < connections_max) return true;
        const auto idle = std::find_if(open.begin(), open.end(), [](const connection* c) {
            return c->is_idle() && !c->is_closing();
        });
        if (idle == open.end()) return false;
        (*idle)->close();
        return true;
    }

    const service& about;
    connections open;  // Outlives the connections that the context holds.
    asio::io_context context{1};
    tcp::acceptor acceptor{context};
    asio::steady_timer pause{context};
    std::thread thread;
};

admin_server::admin_server(std::unique_ptr<impl> inside) : impl_(std::move(inside)) {}

result<std::unique_ptr<admin_server>> admin_server::start(
    const admin_address& where, const service& about, log_sink& log
) {
    auto inside = std::make_unique<impl>(about);
    const tcp::endpoint endpoint{asio::ip::make_address(where.host), where.port};
    beast::error_code ec;
    inside->acceptor.open(endpoint.protocol(), ec);
    if (!ec) inside->acceptor.set_option(asio::socket_base::reuse_address(true), ec);
    if (!ec) inside->acceptor.bind(endpoint, ec);
    if (!ec) inside->acceptor.listen(connections_max, ec);
    if (ec) {
        return fail(
            errc::unavailable,
            fmt::format("the admin server cannot listen on {}:{}: {}", where.host, where.port, ec.message())
        );
    }
    const tcp::endpoint bound = inside->acceptor.local_endpoint();
    log.write(
        log_level::info,
        "admin.listening",
        {{"host", bound.address().to_string()}, {"port", fmt::format("{}", bound.port())}}
    );
    inside->accept();
    inside->thread = std::thread([context = &inside->context] { context->run(); });
    return std::unique_ptr<admin_server>(new admin_server(std::move(inside)));
}

admin_server::~admin_server() {
    impl_->context.stop();
    impl_->thread.join();
}

void check_admin(const settings& values, faults& found) {
    if (!values.has("admin")) return;
    if (const auto parsed = parse_admin_address(values.text("admin")); !parsed) {
        found.add(fmt::format("{}: {}", values.named("admin"), parsed.error().detail));
    }
}

result<std::unique_ptr<admin_server>> start_admin(
    const settings& values, const service& about, log_sink& log
) {
    if (!values.has("admin")) return std::unique_ptr<admin_server>{};
    const auto where = parse_admin_address(values.text("admin"));
    if (!where) return tl::unexpected(where.error());
    return admin_server::start(*where, about, log);
}

}  // namespace millrace::app
