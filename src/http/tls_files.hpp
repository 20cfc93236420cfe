/// The files of TLS, looked at before any request: libcurl finds a fault in them only at its first one, which
/// is then taken for a service that cannot be reached. Reads files; any thread.
#pragma once

#include <optional>
#include <string>

namespace millrace {

struct tls_files {
    std::string ca;  ///< Empty, as each below: none.
    std::string certificate;
    std::string key;
    std::string key_password;
};

struct tls_fault {
    enum class of { ca, certificate, key } file;
    std::string why;  ///< Ends a sentence that begins with the file; shows no secret.
};

/// The first fault; nothing when a connection can be made with them.
[[nodiscard]] std::optional<tls_fault> fault_of(const tls_files& files);

}  // namespace millrace
