/// A registry behind TLS for tests.
#pragma once

#include "support/process.hpp"
#include "support/services.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace::registry::test {

/// Of one file, the latest version of the subject `a`: the schema 7, an int. It asks for a client's
/// certificate.
class tls_registry {
public:
    tls_registry() {
        const auto path = folder_.path() / "subjects" / "a" / "versions";
        std::filesystem::create_directories(path);
        std::ofstream(path / "latest") << R"({"subject":"a","version":1,"id":7,"schema":"\"int\""})";
        const auto tls = support::services().tls.string();
        const std::string script =
            "cd \"$0\" && exec openssl s_server -accept 127.0.0.1:0 -WWW -cert \"$1/server.crt\" "
            "-key \"$1/server.key\" -CAfile \"$1/ca.crt\" -Verify 1 -verify_return_error";
        support::spawn_options options;
        options.output = options.errors = folder_.path() / "log";
        server_.emplace(
            std::vector<std::string>{"/bin/sh", "-c", script, folder_.path().string(), tls}, options
        );
        if (!support::eventually(std::chrono::seconds{30}, [&] { return !port().empty(); }))
            throw std::runtime_error("no TLS server: " + support::read_file(folder_.path() / "log"));
    }
    [[nodiscard]] std::string url() const { return "https://localhost:" + port(); }

private:
    [[nodiscard]] std::string port() const {
        const auto log = support::read_file(folder_.path() / "log");
        const auto at = log.find("ACCEPT ");
        if (at == std::string::npos || log.find('\n', at) == std::string::npos) return {};
        const auto line = log.substr(at, log.find('\n', at) - at);
        return line.substr(line.rfind(':') + 1);
    }

    support::temporary_folder folder_;
    std::optional<support::process> server_;
};

}  // namespace millrace::registry::test
