/// HTTP by libcurl's multi interface, on one thread of its own.
///
/// Connections are kept and shared, HTTP/2 is used where the endpoint offers it over TLS, certificates are
/// always verified, and proxies are taken from the environment as curl does. All functions are thread-safe.
#pragma once

#include "http.hpp"

#include <millrace/time.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace millrace {

struct curl_http_options {
    std::size_t connections_max{32};  ///< And requests under way; further ones wait.
    std::size_t requests_max{4'096};  ///< Waiting or under way; above, a request fails with `throttled`.
    std::size_t reply_bytes_max{std::size_t{24} << 20};  ///< 10 MiB of records are up to 17 in JSON.
    milliseconds connect_timeout{3'000};                 ///< For name, connection and TLS together.

    /// A repeatable request fails when no byte moves on its connection for so long.
    milliseconds stall_timeout{5'000};

    /// PEM file of the authorities to trust; empty: the system's.
    std::string ca_file;

    /// PEM files with which this side shows who it is, where a server asks for it; both or none. The password
    /// of the key, where it has one, is never shown.
    std::string client_certificate_file;
    std::string client_key_file;
    std::string client_key_password;

    /// How people name the file of authorities, for messages: a variable or a setting.
    std::string ca_setting{"ca_file"};
};

class curl_http final : public http {
public:
    explicit curl_http(curl_http_options options = {});

    /// Completes what is not done with `cancelled`, and does not wait for the network. Not inside a `done`.
    ~curl_http() override;
    curl_http(const curl_http&) = delete;
    curl_http& operator=(const curl_http&) = delete;

    void send(http_request what, http_done done) override;

    /// Calls `what` on the thread after the pause; it is dropped, uncalled, when this object ends before.
    void call_after(milliseconds pause, std::function<void()> what);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
