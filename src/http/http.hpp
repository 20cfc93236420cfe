/// One HTTP request and its reply, and the port that carries them.
///
/// A reply of any status is a success here: only what was not answered is an error. Redirects are not
/// followed. Plain data; no thread contract but that of `http` itself.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace {

struct http_request {
    std::string method{"GET"};
    std::string url;  ///< "http://" or "https://"; host, path and query as they go over the wire.
    std::vector<std::pair<std::string, std::string>> headers;  ///< Without Host and Content-Length.
    std::string body;
    milliseconds timeout{10'000};  ///< From `send` to the last byte of the reply, waiting included.

    /// May be sent once more at once when a kept connection turns out to be closed, without a word of reply.
    /// False for what must not take effect twice: then that is an error with `in_doubt`.
    bool repeatable{true};

    /// False: never through a proxy, whatever the environment says. For addresses of the own machine.
    bool proxy{true};
};

struct http_reply {
    int status{0};
    std::string head;  ///< The header lines as they came, each ended by "\n" or "\r\n".
    std::string body;

    /// The value of the first header of that name (any case), without spaces around it; empty when absent.
    [[nodiscard]] std::string_view header(std::string_view name) const;
};

/// An error with `in_doubt` says that the request may have been received.
using http_done = std::function<void(result<http_reply>)>;

class http {
public:
    virtual ~http() = default;

    /// Thread-safe. `done` is called once, on a thread of the implementation, never inside this call; after
    /// the implementation's end with `cancelled`.
    virtual void send(http_request what, http_done done) = 0;
};

}  // namespace millrace
