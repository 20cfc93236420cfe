#include "transfer.hpp"

#include "assert.hpp"

#include <algorithm>
#include <cstdio>
#include <new>

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace millrace {

namespace {

/// All options used are of this version of libcurl, so a refusal is a programming error.
template <class Value>
void set(CURL* handle, CURLoption option, Value value) {
    const auto done = curl_easy_setopt(handle, option, value);
    MILLRACE_ASSERT(done == CURLE_OK || done == CURLE_OUT_OF_MEMORY);
    if (done != CURLE_OK) throw std::bad_alloc();
}

bool has_header(const http_request& request, std::string_view name) {
    return std::any_of(request.headers.begin(), request.headers.end(), [&](const auto& header) {
        return header.first.size() == name.size() &&
               curl_strnequal(header.first.data(), name.data(), name.size()) != 0;
    });
}

/// Programs that are started, such as one that gives credentials, must not keep connections open. And a
/// connection whose other end is gone without a word must not be used for a quarter of an hour: requests that
/// share it keep data unacknowledged, for which keep-alive does nothing.
int prepare_socket(void* unacknowledged, curl_socket_t socket, curlsocktype /*unused*/) {
    if (::fcntl(socket, F_SETFD, FD_CLOEXEC) != 0) return CURL_SOCKOPT_ERROR;
    const auto limit = *static_cast<const unsigned*>(unacknowledged);
    // It is a help only, which not every socket knows.
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
    return CURL_SOCKOPT_OK;
}

/// Scheme, host and port of a URL, for people.
std::string_view origin_of(std::string_view url) {
    const auto host = url.find("://");
    const auto begin = host == std::string_view::npos ? 0 : host + 3;
    return url.substr(0, url.find_first_of("/?#", begin));
}

}  // namespace

transfer::transfer(const curl_http_options& options)
    : reply_bytes_max_(options.reply_bytes_max),
      unacknowledged_max_(static_cast<unsigned>(2 * options.stall_timeout.count())),
      connect_timeout_(options.connect_timeout),
      ca_setting_(options.ca_setting),
      easy_(curl_easy_init()) {
    if (!easy_) throw std::bad_alloc();
    auto* const handle = easy_.get();
    set(handle, CURLOPT_PRIVATE, this);
    set(handle, CURLOPT_ERRORBUFFER, why_);
    set(handle, CURLOPT_NOSIGNAL, 1L);
    set(handle, CURLOPT_QUICK_EXIT, 1L);  // does not wait for a resolver
    set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    set(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(handle, CURLOPT_SSL_VERIFYPEER, 1L);
    set(handle, CURLOPT_SSL_VERIFYHOST, 2L);
    if (!options.ca_file.empty()) set(handle, CURLOPT_CAINFO, options.ca_file.c_str());
    if (!options.client_certificate_file.empty()) {
        set(handle, CURLOPT_SSLCERT, options.client_certificate_file.c_str());
        set(handle, CURLOPT_SSLKEY, options.client_key_file.c_str());
        if (!options.client_key_password.empty())
            set(handle, CURLOPT_KEYPASSWD, options.client_key_password.c_str());
    }
    set(handle, CURLOPT_SOCKOPTFUNCTION, &prepare_socket);
    set(handle, CURLOPT_SOCKOPTDATA, &unacknowledged_max_);
    set(handle, CURLOPT_TCP_KEEPALIVE, 1L);
    set(handle, CURLOPT_TCP_KEEPIDLE, 30L);
    set(handle, CURLOPT_TCP_KEEPINTVL, 10L);
    set(handle, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    set(handle, CURLOPT_BUFFERSIZE, 64L << 10);
    set(handle, CURLOPT_USERAGENT, "millrace");
    set(handle, CURLOPT_READFUNCTION, &transfer::on_send);
    set(handle, CURLOPT_READDATA, this);
    set(handle, CURLOPT_SEEKFUNCTION, &transfer::on_rewind);
    set(handle, CURLOPT_SEEKDATA, this);
    set(handle, CURLOPT_HEADERFUNCTION, &transfer::on_header);
    set(handle, CURLOPT_HEADERDATA, this);
    set(handle, CURLOPT_WRITEFUNCTION, &transfer::on_body);
    set(handle, CURLOPT_WRITEDATA, this);
}

void transfer::begin(http_request what, bool afresh) {
    request_ = std::move(what);
    reply_ = {};
    sent_ = 0;
    body_sent_ = too_long_ = head_complete_ = false;
    moved_ = std::chrono::steady_clock::now() + connect_timeout_;
    heard_ = {};
    why_[0] = '\0';

    curl_slist* list = nullptr;
    const auto add = [&](const char* line) {
        auto* const longer = curl_slist_append(list, line);
        if (longer == nullptr) {
            curl_slist_free_all(list);
            throw std::bad_alloc();
        }
        list = longer;
    };
    std::string line;
    for (const auto& [name, value] : request_.headers) {
        line.assign(name).append(value.empty() ? ";" : ": ").append(value);
        add(line.c_str());
    }
    add("Expect:");
    if (!has_header(request_, "Content-Type")) add("Content-Type:");
    if (!has_header(request_, "Accept")) add("Accept:");
    auto* const handle = easy_.get();
    set(handle, CURLOPT_HTTPHEADER, list);
    headers_.reset(list);

    // HTTP/2 shares a connection: worth the wait for the first one to be made, where it can be.
    const bool tls = request_.url.starts_with("https:");
    set(handle, CURLOPT_HTTP_VERSION, static_cast<long>(tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
    );
    set(handle, CURLOPT_PIPEWAIT, tls ? 1L : 0L);
    set(handle, CURLOPT_FRESH_CONNECT, afresh ? 1L : 0L);
    set(handle, CURLOPT_URL, request_.url.c_str());
    set(handle, CURLOPT_NOPROXY, request_.proxy ? static_cast<const char*>(nullptr) : "*");
    const bool plain_get = request_.method == "GET" && request_.body.empty();
    if (plain_get) {
        set(handle, CURLOPT_HTTPGET, 1L);
    } else {
        set(handle, CURLOPT_POST, 1L);
        set(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    }
    const bool named = !plain_get && request_.method != "POST";
    set(handle, CURLOPT_CUSTOMREQUEST, named ? request_.method.c_str() : static_cast<const char*>(nullptr));
}

std::size_t transfer::on_send(char* into, std::size_t size, std::size_t count, void* self) {
    auto& me = *static_cast<transfer*>(self);
    const auto bytes = std::min(size * count, me.request_.body.size() - me.sent_);
    std::copy_n(me.request_.body.data() + me.sent_, bytes, into);
    me.sent_ += bytes;
    me.moved_ = std::chrono::steady_clock::now();
    me.body_sent_ = me.body_sent_ || bytes > 0;
    return bytes;
}

// Where libcurl would send a request again on its own, because a kept connection was closed without a reply.
int transfer::on_rewind(void* self, curl_off_t offset, int origin) {
    auto& me = *static_cast<transfer*>(self);
    if (!me.request_.repeatable || offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_FAIL;
    me.sent_ = 0;
    return CURL_SEEKFUNC_OK;
}

std::size_t transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
    auto& me = *static_cast<transfer*>(self);
    constexpr std::size_t head_bytes_max = 64 << 10;
    const std::string_view line(data, size * count);
    me.moved_ = me.heard_ = std::chrono::steady_clock::now();
    me.head_complete_ = line == "\r\n" || line == "\n";
    if (line.starts_with("HTTP/")) {  // also after an interim reply, or of a proxy
        me.reply_.head.clear();
        return line.size();
    }
    if (me.reply_.head.size() + line.size() > head_bytes_max) {
        me.too_long_ = true;
        return 0;
    }
    me.reply_.head.append(line);
    return line.size();
}

std::size_t transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
    auto& me = *static_cast<transfer*>(self);
    const auto bytes = size * count;
    auto& body = me.reply_.body;
    if (body.empty()) {
        curl_off_t announced = 0;
        curl_easy_getinfo(me.easy_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
        if (announced > 0) body.reserve(std::min(static_cast<std::size_t>(announced), me.reply_bytes_max_));
    }
    if (body.size() + bytes > me.reply_bytes_max_) {
        me.too_long_ = true;
        return 0;
    }
    body.append(data, bytes);
    me.moved_ = me.heard_ = std::chrono::steady_clock::now();
    return bytes;
}

result<http_reply> transfer::end(CURLcode how) {
    if (how != CURLE_OK) return tl::unexpected(failure(how));
    if (!head_complete_) {  // libcurl takes it for a reply without a body
        return tl::unexpected(given_up(errc::unavailable, "the connection ended within the head of its reply")
        );
    }
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    reply_.status = static_cast<int>(status);
    return std::move(reply_);
}

error transfer::given_up(errc code, std::string_view why) const {
    return {
        code,
        code == errc::cancelled ? retry_advice::never : retry_advice::after_delay,
        anything_sent(),
        fmt::format("{}: {}", where(), why)};
}

// Of a connection that others use, too, libcurl would end this request alone, and send the next one there.
void transfer::forsake_connection() {
    set(easy_.get(), CURLOPT_FORBID_REUSE, 1L);
    forsaken_ = true;
}

void transfer::hear_of(const transfer& other) {
    if (shares_connection_with(other)) moved_ = std::max(moved_, other.heard_);
}

// Requests that are under way at once share an address and port of this machine only by HTTP/2.
bool transfer::shares_connection_with(const transfer& other) const {
    const auto port = local_port();
    return port != 0 && port == other.local_port();
}

long transfer::local_port() const {
    long port = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_LOCAL_PORT, &port);
    return port;
}

void transfer::clear() {
    set(easy_.get(), CURLOPT_FORBID_REUSE, 0L);
    forsaken_ = false;
    request_ = {};
    reply_ = {};
}

bool transfer::anything_sent() const {
    if (!request_.body.empty()) return body_sent_;
    long bytes = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_REQUEST_SIZE, &bytes);
    return bytes > 0;
}

std::string transfer::where() const {
    return fmt::format("cannot have an answer of {}", origin_of(request_.url));
}

error transfer::failure(CURLcode how) const {
    const auto text = fmt::format("{}: {}", where(), why_[0] == '\0' ? curl_easy_strerror(how) : why_);
    const bool sent = anything_sent();
    constexpr auto later = retry_advice::after_delay;
    switch (how) {
        case CURLE_URL_MALFORMAT:
        case CURLE_UNSUPPORTED_PROTOCOL:
            if (sent) break;  // what came back is no HTTP
            return {errc::invalid_config, retry_advice::never, false, text + "; correct the URL"};
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_ISSUER_ERROR:
            return {
                errc::permission_denied,
                later,
                false,
                fmt::format(
                    "{}; the certificate is not trusted: name its authority's PEM file in {}, or correct the "
                    "host's name",
                    text,
                    ca_setting_
                )};
        case CURLE_SSL_CACERT_BADFILE:
            return {
                errc::invalid_config,
                later,
                false,
                fmt::format("{}; check the file of authorities that {} names", text, ca_setting_)};
        case CURLE_SSL_CERTPROBLEM:
            return {
                errc::invalid_config,
                later,
                false,
                text + "; check the files of the client's certificate and key, and the key's password"};
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
            return {errc::unavailable, later, sent, text + "; check the name in the endpoint, and the DNS"};
        case CURLE_COULDNT_CONNECT:
            return {errc::unavailable, later, sent, text + "; check that it runs, and the address"};
        case CURLE_WRITE_ERROR:
            if (too_long_) {
                return {
                    errc::corrupt,
                    later,
                    sent,
                    fmt::format("{}: its reply is longer than {} bytes", where(), reply_bytes_max_)};
            }
            break;
        case CURLE_SEND_FAIL_REWIND:  // libcurl's text is of its own insides
            return {
                errc::unavailable,
                later,
                sent,
                where() +
                    ": the connection ended after the request had been sent, and before a reply came; it may "
                    "have been carried out, so it is not sent again by itself"};
        default:
            break;
    }
    return {errc::unavailable, later, sent, text + "; the connection may be bad, or the service overloaded"};
}

}  // namespace millrace
