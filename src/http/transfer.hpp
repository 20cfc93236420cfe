/// One handle of libcurl, used for one request after the other. Belongs to the thread of `curl_http`.
#pragma once

#include "curl_http.hpp"
#include "http.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <curl/curl.h>

namespace millrace {

using steady_time = std::chrono::steady_clock::time_point;
using timers = std::multimap<steady_time, std::function<void()>>;

struct curl_easy_deleter {
    void operator()(CURL* handle) const noexcept { curl_easy_cleanup(handle); }
};
struct curl_slist_deleter {
    void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};

class transfer {
public:
    explicit transfer(const curl_http_options& options);
    transfer(const transfer&) = delete;
    transfer& operator=(const transfer&) = delete;

    [[nodiscard]] CURL* handle() const { return easy_.get(); }

    /// Makes the handle ready for `curl_multi_add_handle`; `afresh`: on a connection that nobody used before.
    void begin(http_request what, bool afresh);

    /// The outcome, after `curl_multi_remove_handle` or before the handle was ever added; once a `begin`.
    [[nodiscard]] result<http_reply> end(CURLcode how);

    /// The same for a request that is given up.
    [[nodiscard]] error given_up(errc code, std::string_view why) const;

    /// So long after a byte moved last, or the connection had to stand; once.
    [[nodiscard]] steady_time stalls_at(milliseconds limit) const {
        return forsaken_ ? steady_time::max() : moved_ + limit;
    }

    /// False once something went out that must not go twice: given up it would be in doubt, so it is waited
    /// for to its time-out.
    [[nodiscard]] bool may_go_twice() const { return request_.repeatable || !body_sent_; }

    /// What another one was answered on the same connection counts here: it lives, so this one only waits for
    /// a slow service, and to send it again would make that slower.
    void hear_of(const transfer& other);

    /// Both are under way on one connection, which only HTTP/2 allows.
    [[nodiscard]] bool shares_connection_with(const transfer& other) const;

    /// Before the handle is removed: nobody is to use its connection after it and those that share it.
    void forsake_connection();
    [[nodiscard]] bool is_forsaken() const { return forsaken_; }

    /// Frees what the request held; the handle and its connection stay.
    void clear();

    http_done done;             ///< Of the request under way.
    timers::iterator deadline;  ///< The same.

private:
    static std::size_t on_send(char* into, std::size_t size, std::size_t count, void* self);
    static int on_rewind(void* self, curl_off_t offset, int origin);
    static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
    static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);

    [[nodiscard]] bool anything_sent() const;
    [[nodiscard]] std::string where() const;
    [[nodiscard]] long local_port() const;
    [[nodiscard]] error failure(CURLcode how) const;

    std::size_t reply_bytes_max_;
    unsigned unacknowledged_max_;  // milliseconds, of data that was sent
    milliseconds connect_timeout_;
    std::string ca_setting_;
    std::unique_ptr<CURL, curl_easy_deleter> easy_;
    std::unique_ptr<curl_slist, curl_slist_deleter> headers_;
    http_request request_;
    http_reply reply_;
    std::size_t sent_{0};  ///< Bytes of the body that the next `on_send` begins behind.
    bool body_sent_{false};
    bool too_long_{false};
    bool head_complete_{false};
    bool forsaken_{false};
    steady_time moved_;
    steady_time heard_;  // a byte of the reply came last
    char why_[CURL_ERROR_SIZE]{};
};

}  // namespace millrace
