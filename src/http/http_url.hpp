/// The address of a server that speaks HTTP, taken apart. Pure functions; plain data.
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace millrace {

struct http_url {
    bool tls{false};
    std::string_view authority;  ///< Host and port as given.
    std::string_view host;       ///< An IPv6 address with its brackets.
    std::string_view port;       ///< Empty where none is given.
    std::string_view path;       ///< Empty, or begins with "/".
};

/// "http://127.0.0.1:4567", "https://[::1]/path": views into `url`. The error ends a sentence that begins
/// with what the address is, and never shows the address, which may hold a password.
[[nodiscard]] tl::expected<http_url, std::string_view> parse_http_url(std::string_view url);

}  // namespace millrace
