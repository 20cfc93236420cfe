#include "http_url.hpp"
#include "registry_client.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::registry {

namespace {

tl::unexpected<error> wrong(std::string_view what) {
    return fail(errc::invalid_config, fmt::format("the schema registry's {}", what));
}

bool fits_a_header(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
}

result<void> check_urls(const std::vector<std::string>& urls) {
    constexpr std::size_t urls_max = 16;
    if (urls.empty() || urls.size() > urls_max)
        return wrong(fmt::format("urls are {}; name 1 to {}", urls.size(), urls_max));
    for (std::size_t i = 0; i < urls.size(); ++i) {
        if (const auto parts = parse_http_url(urls[i]); !parts) {
            return wrong(fmt::format(
                "urls[{}] {}; write it as in \"http://registry:8081\" or \"https://host/apis/ccompat/v7\", "
                "and user "
                "and password beside it",
                i,
                parts.error()
            ));
        }
    }
    return {};
}

result<void> check_credentials(const registry_options& of) {
    if (!of.token.empty() && !(of.user.empty() && of.password.empty()))
        return wrong("token stands beside a user or password; give one of both");
    if (of.user.empty() && !of.password.empty()) return wrong("password has no user; name it");
    if (of.user.find(':') != std::string::npos)
        return wrong("user holds a colon, which basic authentication cannot");
    if (!fits_a_header(of.user)) return wrong("user holds control characters");
    if (!fits_a_header(of.password))
        return wrong("password holds control characters; is a line break at its end?");
    if (!fits_a_header(of.token)) return wrong("token holds control characters; is a line break at its end?");
    if (of.client_certificate_file.empty() != of.client_key_file.empty())
        return wrong("client_certificate_file and client_key_file belong together; name both or none");
    return {};
}

}  // namespace

result<void> registry_options::validate() const {
    if (auto fine = check_urls(urls); !fine) return fine;
    if (auto fine = check_credentials(*this); !fine) return fine;
    constexpr milliseconds longest{600'000};
    for (const auto& [name, span] :
         {std::pair{"connect_timeout", connect_timeout}, {"request_timeout", request_timeout}}) {
        if (span < milliseconds{1} || span > longest)
            return wrong(fmt::format("{} is {} ms; choose 1 ms to 10 min", name, span.count()));
    }
    constexpr std::size_t connections_most = 256;
    if (connections_max < 1 || connections_max > connections_most)
        return wrong(fmt::format("connections_max is {}; choose 1 to {}", connections_max, connections_most));
    constexpr std::size_t smallest_reply = 1'024;
    if (reply_bytes_max < smallest_reply)
        return wrong(fmt::format("reply_bytes_max is {}; choose at least {}", reply_bytes_max, smallest_reply)
        );
    if (limits.schema_bytes_max < 1) return wrong("schema_bytes_max is 0; choose at least 1");
    return {};
}

}  // namespace millrace::registry
