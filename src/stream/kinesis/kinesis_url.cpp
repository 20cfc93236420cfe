#include "kinesis_url.hpp"

#include "address.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr std::string_view scheme = "kinesis://";
constexpr std::size_t name_bytes_max = 128;  // the API's
constexpr std::size_t record_bytes_least = 1 << 10;
constexpr std::size_t record_bytes_most = 10 << 20;  // of what a stream can be set to

bool is_alphanumeric(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view text) {
    return !text.empty() && text.size() <= name_bytes_max && std::ranges::all_of(text, [](char c) {
        return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
    });
}

/// `arn:PARTITION:kinesis:REGION:ACCOUNT:stream/NAME`: its fields by number.
std::string_view field_of(std::string_view arn, int number) {
    for (; number > 0; --number) {
        const auto colon = arn.find(':');
        if (colon == std::string_view::npos) return {};
        arn.remove_prefix(colon + 1);
    }
    return number == 0 ? arn.substr(0, arn.find(':')) : std::string_view{};
}

constexpr std::string_view resource_prefix = "stream/";

std::string_view why_not_arn(std::string_view arn, std::string_view region) {
    const auto account = field_of(arn, 4);
    const auto resource = field_of(arn, 5);
    if (std::ranges::count(arn, ':') != 5 || field_of(arn, 2) != "kinesis" ||
        !resource.starts_with(resource_prefix) || !is_name(resource.substr(resource_prefix.size())) ||
        !field_of(arn, 1).starts_with("aws") ||
        !std::ranges::all_of(field_of(arn, 1), [](char c) { return is_alphanumeric(c) || c == '-'; }))
        return "names no stream by its ARN; write arn:aws:kinesis:REGION:ACCOUNT:stream/NAME";
    if (account.size() != 12 || !std::ranges::all_of(account, [](char c) { return c >= '0' && c <= '9'; }))
        return "has an ARN whose account is not of 12 digits";
    if (field_of(arn, 3) != region) return "has an ARN of another region";
    return {};
}

std::string_view why_not_name(std::string_view name) {
    if (is_name(name)) return {};
    return "names a stream that cannot exist: 1 to 128 letters, digits, dots, underscores and hyphens are a "
           "name";
}

std::string_view read_parameter(std::string_view name, std::string_view value, kinesis_losses& out) {
    if (name == "headers" && (value == "drop" || value == "refuse")) {
        out.drop_headers = value == "drop";
    } else if (name == "tombstones" && (value == "refuse" || value == "empty")) {
        out.empty_tombstones = value == "empty";
    } else if (name == "record_bytes_max") {
        const auto read = std::from_chars(value.data(), value.data() + value.size(), out.record_bytes_max);
        const bool whole = read.ec == std::errc() && read.ptr == value.data() + value.size();
        if (!whole || out.record_bytes_max < record_bytes_least || out.record_bytes_max > record_bytes_most)
            return "has a record_bytes_max that is not from 1024 to 10485760";
    } else {
        return "has a parameter that is none of headers=drop|refuse, tombstones=refuse|empty, "
               "record_bytes_max=BYTES and, as the last one, endpoint=URL";
    }
    return {};
}

std::string read_query(std::string_view query, kinesis_address& out) {
    constexpr std::string_view endpoint = "endpoint=";
    while (!query.starts_with(endpoint)) {
        const auto parameter = query.substr(0, query.find('&'));
        const auto equals = std::min(parameter.find('='), parameter.size());
        if (!out.losses) out.losses.emplace();
        const auto value = parameter.substr(std::min(equals + 1, parameter.size()));
        if (const auto why = read_parameter(parameter.substr(0, equals), value, *out.losses); !why.empty())
            return std::string(why);
        if (parameter.size() == query.size()) return {};
        query.remove_prefix(parameter.size() + 1);
    }
    out.endpoint = query.substr(endpoint.size());
    const auto valid = aws::check_endpoint(out.endpoint);
    return valid ? std::string{} : valid.error().detail;
}

}  // namespace

std::string kinesis_address::name() const {
    return by_arn() ? stream.substr(stream.rfind('/') + 1) : stream;
}

aws::kinesis::stream_name kinesis_address::wire_name() const {
    return by_arn() ? aws::kinesis::stream_name{"", stream} : aws::kinesis::stream_name{stream, ""};
}

result<void> check_kinesis_stream_name(std::string_view name) {
    if (is_name(name)) return {};
    return fail(
        errc::invalid_argument,
        fmt::format(
            "\"{}\" cannot name a Kinesis stream; use 1 to {} letters, digits, dots, underscores and hyphens",
            name.substr(0, name_bytes_max),
            name_bytes_max
        )
    );
}

result<kinesis_address> parse_kinesis_url(std::string_view url) {
    const auto bad = [&](std::string_view why) {
        // A user and password may stand in an endpoint, where they are of no use.
        const auto shown = url.find('@') == std::string_view::npos ? url : url.substr(0, url.find('?'));
        return fail(
            errc::invalid_argument,
            fmt::format("URL \"{}\" {}; expected kinesis://REGION/STREAM[?endpoint=URL]", shown, why)
        );
    };
    if (!url.starts_with(scheme)) return bad("does not begin with kinesis://");
    auto rest = url.substr(scheme.size());
    kinesis_address address;
    if (const auto query = rest.find('?'); query != std::string_view::npos) {
        if (const auto why = read_query(rest.substr(query + 1), address); !why.empty()) return bad(why);
        rest = rest.substr(0, query);
    }
    const auto slash = rest.find('/');
    address.region = rest.substr(0, slash);
    if (const auto valid = aws::check_region(address.region); !valid) return bad(valid.error().detail);
    if (slash == std::string_view::npos) return address;
    address.stream = rest.substr(slash + 1);
    if (address.stream.empty()) return bad("names no stream behind its region");
    const auto why =
        address.by_arn() ? why_not_arn(address.stream, address.region) : why_not_name(address.stream);
    if (!why.empty()) return bad(why);
    return address;
}

}  // namespace millrace
