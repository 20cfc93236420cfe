#include "http_url.hpp"
#include "option_faults.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace::registry {

namespace {

bool fits_a_header(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
}

class findings {
public:
    void add(std::string_view option, std::string_view what, std::size_t index = 0) {
        all.push_back({option, index, fmt::format("the schema registry's {}", what)});
    }
    std::vector<option_fault> all;
};

void check_urls(const std::vector<std::string>& urls, findings& found) {
    constexpr std::size_t urls_max = 16;
    if (urls.empty() || urls.size() > urls_max)
        found.add("urls", fmt::format("urls are {}; name 1 to {}", urls.size(), urls_max));
    for (std::size_t i = 0; i < urls.size(); ++i) {
        const auto parts = parse_http_url(urls[i]);
        if (parts) continue;
        found.add(
            "urls",
            fmt::format(
                "urls[{}] {}; write it as in \"http://registry:8081\" or \"https://host/apis/ccompat/v7\", "
                "and user and password beside it",
                i,
                parts.error()
            ),
            i
        );
    }
}

void check_credentials(const registry_options& of, findings& found) {
    if (!of.token.empty() && !(of.user.empty() && of.password.empty()))
        found.add("token", "token stands beside a user or password; give one of both");
    if (of.user.empty() && !of.password.empty()) found.add("password", "password has no user; name it");
    if (of.user.find(':') != std::string::npos)
        found.add("user", "user holds a colon, which basic authentication cannot");
    if (!fits_a_header(of.user)) found.add("user", "user holds control characters");
    if (!fits_a_header(of.password))
        found.add("password", "password holds control characters; is a line break at its end?");
    if (!fits_a_header(of.token))
        found.add("token", "token holds control characters; is a line break at its end?");
    if (of.client_certificate_file.empty() != of.client_key_file.empty()) {
        found.add(
            of.client_key_file.empty() ? "client_certificate_file" : "client_key_file",
            "client_certificate_file and client_key_file belong together; name both or none"
        );
    }
    if (of.client_key_file.empty() && !of.client_key_password.empty())
        found.add("client_key_password", "client_key_password has no key; name client_key_file");
}

void check_limits(const registry_options& of, findings& found) {
    constexpr milliseconds longest{600'000};
    for (const auto& [name, span] :
         {std::pair<std::string_view, milliseconds>{"connect_timeout", of.connect_timeout},
          {"request_timeout", of.request_timeout}}) {
        if (span < milliseconds{1} || span > longest)
            found.add(name, fmt::format("{} is {} ms; choose 1 ms to 10 min", name, span.count()));
    }
    constexpr std::size_t connections_most = 256;
    if (of.connections_max < 1 || of.connections_max > connections_most) {
        found.add(
            "connections_max",
            fmt::format("connections_max is {}; choose 1 to {}", of.connections_max, connections_most)
        );
    }
    constexpr std::size_t smallest_reply = 1'024;
    if (of.reply_bytes_max < smallest_reply) {
        found.add(
            "reply_bytes_max",
            fmt::format("reply_bytes_max is {}; choose at least {}", of.reply_bytes_max, smallest_reply)
        );
    }
    if (of.limits.schema_bytes_max < 1)
        found.add("schema_bytes_max", "schema_bytes_max is 0; choose at least 1");
}

}  // namespace

std::vector<option_fault> faults_of(const registry_options& options) {
    findings found;
    check_urls(options.urls, found);
    check_credentials(options, found);
    check_limits(options, found);
    return std::move(found.all);
}

result<void> registry_options::validate() const {
    if (auto found = faults_of(*this); !found.empty())
        return fail(errc::invalid_config, std::move(found.front().what));
    return {};
}

}  // namespace millrace::registry
