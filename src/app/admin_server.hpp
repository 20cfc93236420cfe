/// A small HTTP server for operators: /healthz, /readyz, /status (JSON), /metrics (Prometheus text).
///
/// One thread; at most 32 connections, requests of 8 KiB, 10 seconds each. No authentication: it listens on
/// loopback unless the address says otherwise. Answers come from a `service`, which must outlive it.
#pragma once

#include "faults.hpp"
#include "service.hpp"
#include "settings.hpp"

#include <millrace/error.hpp>
#include <millrace/log.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace millrace::app {

struct admin_address {
    std::string host;  ///< A numeric address.
    std::uint16_t port{0};

    bool operator==(const admin_address&) const = default;
};

/// `127.0.0.1:9464`, `[::1]:9464`, `localhost:9464`, `:9464` (loopback).
[[nodiscard]] result<admin_address> parse_admin_address(std::string_view text);

/// The answer to one path, without the network. Pure but for the service's lock.
struct admin_answer {
    unsigned status{200};
    std::string content_type;
    std::string body;
};
[[nodiscard]] admin_answer answer_admin(std::string_view path, const service& about);

class admin_server {
public:
    /// Fails when the address is in use or not of this machine.
    [[nodiscard]] static result<std::unique_ptr<admin_server>> start(
        const admin_address& where, const service& about, log_sink& log
    );
    ~admin_server();
    admin_server(const admin_server&) = delete;
    admin_server& operator=(const admin_server&) = delete;

private:
    struct impl;
    explicit admin_server(std::unique_ptr<impl> inside);
    std::unique_ptr<impl> impl_;
};

/// What `--admin` says is wrong, if anything.
void check_admin(const settings& values, faults& found);

/// Null when `--admin` is not given.
[[nodiscard]] result<std::unique_ptr<admin_server>> start_admin(
    const settings& values, const service& about, log_sink& log
);

}  // namespace millrace::app
