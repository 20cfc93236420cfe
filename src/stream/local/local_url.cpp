#include "local_url.hpp"

#include "text/one_line.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace millrace {

namespace {

constexpr std::string_view scheme = "local:";
constexpr std::size_t name_bytes_max = 249;

tl::unexpected<error> bad_url(std::string_view url, std::string_view why, std::string_view expected) {
    return fail(
        errc::invalid_argument, fmt::format("URL \"{}\" {}; expected {}", one_line(url), why, expected)
    );
}

}  // namespace

result<void> check_stream_name(std::string_view name) {
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    };
    if (!name.empty() && name.size() <= name_bytes_max && std::ranges::all_of(name, allowed) && name != "." &&
        name != "..")
        return {};
    return fail(
        errc::invalid_argument,
        fmt::format(
            "stream name \"{}\" is not usable; use 1 to {} letters, digits, dots, underscores and hyphens",
            one_line(name.substr(0, name_bytes_max)),
            name_bytes_max
        )
    );
}

result<local_address> parse_local_stream(std::string_view url) {
    constexpr std::string_view expected = "local:PATH/STREAM, such as local:/var/lib/app/streams.db/orders";
    if (!url.starts_with(scheme)) return bad_url(url, "does not begin with local:", expected);
    const auto rest = url.substr(scheme.size());
    const auto slash = rest.rfind('/');
    if (slash == std::string_view::npos) return bad_url(url, "names no stream after its file", expected);
    local_address address{std::string(rest.substr(0, slash)), std::string(rest.substr(slash + 1))};
    if (address.file.empty()) return bad_url(url, "names no file", expected);
    if (address.stream.empty()) return bad_url(url, "names no stream after its file", expected);
    if (auto usable = check_stream_name(address.stream); !usable)
        return fail(
            errc::invalid_argument, fmt::format("URL \"{}\": {}", one_line(url), usable.error().detail)
        );
    return address;
}

result<std::string> parse_local_file(std::string_view url) {
    constexpr std::string_view expected = "local:PATH, such as local:/var/lib/app/streams.db";
    if (!url.starts_with(scheme)) return bad_url(url, "does not begin with local:", expected);
    const auto file = url.substr(scheme.size());
    if (file.empty()) return bad_url(url, "names no file", expected);
    if (file.back() == '/') return bad_url(url, "names a directory", expected);
    return std::string(file);
}

}  // namespace millrace
