#include "credentials/role_values.hpp"

#include "credentials/text.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

constexpr std::int64_t shortest = 900;  // of STS, as the longest
constexpr std::int64_t longest = 43'200;

tl::unexpected<error> wrong(std::string_view source, std::string_view what) {
    return fail(errc::invalid_config, fmt::format("{} {}", source, what));
}

bool is_session_name(std::string_view name) {
    return name.size() >= 2 && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      std::string_view("_+=,.@-").find(c) != std::string_view::npos;
           });
}

}  // namespace

std::string_view value_of(const profile& values, std::string_view name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string_view() : std::string_view(found->second);
}

result<role> read_role(const profile& values, std::string_view source) {
    role found;
    found.arn = value_of(values, "role_arn");
    if (!found.arn.starts_with("arn:") || !is_graphic(found.arn) || found.arn.size() > 2'048)
        return wrong(source, "names no role; write it like arn:aws:iam::123456789012:role/NAME");
    found.session_name = value_of(values, "role_session_name");
    if (found.session_name.empty()) found.session_name = "millrace";
    if (!is_session_name(found.session_name))
        return wrong(source, "has a role session name that STS refuses; use 2 to 64 of A-Z a-z 0-9 _+=,.@-");
    found.external_id = value_of(values, "external_id");
    const auto duration = value_of(values, "duration_seconds");
    if (duration.empty()) return found;
    std::int64_t seconds = 0;
    const auto read = std::from_chars(duration.data(), duration.data() + duration.size(), seconds);
    if (read.ec != std::errc{} || read.ptr != duration.data() + duration.size() || seconds < shortest ||
        seconds > longest)
        return wrong(source, fmt::format("has a duration_seconds that is not {} to {}", shortest, longest));
    found.duration = std::chrono::seconds{seconds};
    return found;
}

}  // namespace millrace::aws
