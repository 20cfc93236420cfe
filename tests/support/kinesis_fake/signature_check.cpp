#include "support/kinesis_fake/signature_check.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace millrace::kinesis_fake {

namespace {

constexpr auto tolerated = 5min;

std::string hex(std::string_view bytes) {
    std::string made;
    for (const char c : bytes)
        made += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return made;
}

std::string sha256(std::string_view text) {
    std::array<unsigned char, 32> digest{};
    EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
    return {digest.begin(), digest.end()};
}

std::string hmac(std::string_view key, std::string_view text) {
    std::array<unsigned char, 32> digest{};
    HMAC(
        EVP_sha256(),
        key.data(),
        static_cast<int>(key.size()),
        reinterpret_cast<const unsigned char*>(text.data()),
        text.size(),
        digest.data(),
        nullptr
    );
    return {digest.begin(), digest.end()};
}

std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> parts{""};
    for (const char c : text) {
        if (c == at)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

/// The value behind `name=` in the Authorization header.
std::string part_of(const std::string& authorization, const std::string& name) {
    const auto from = authorization.find(name + "=");
    if (from == std::string::npos) return {};
    const auto begin = from + name.size() + 1;
    return authorization.substr(begin, authorization.find_first_of(", ", begin) - begin);
}

std::string stamp(wall_time when) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
    return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

std::optional<wall_time> read_stamp(const std::string& text) {
    std::tm parts{};
    const char* end = ::strptime(text.c_str(), "%Y%m%dT%H%M%SZ", &parts);
    if (end == nullptr || *end != '\0') return std::nullopt;
    return wall_time{std::chrono::seconds{::timegm(&parts)}};
}

/// Blanks at the ends are not part of a value, and a run of them counts as one.
std::string canonical(std::string_view value) {
    std::string made;
    for (const char c : value) {
        if (c == ' ' && (made.empty() || made.back() == ' ')) continue;
        made += c;
    }
    while (!made.empty() && made.back() == ' ')
        made.pop_back();
    return made;
}

std::optional<refusal> check_time(const std::string& date, wall_time now) {
    const auto when = read_stamp(date);
    if (!when) {
        return refusal{
            "IncompleteSignatureException", "Date must be in ISO-8601 'basic format'. Got '" + date + "'."};
    }
    if (*when < now - tolerated) {
        return refusal{
            "InvalidSignatureException",
            fmt::format(
                "Signature expired: {} is now earlier than {} ({} - 5 min.)",
                date,
                stamp(now - tolerated),
                stamp(now)
            )};
    }
    if (*when > now + tolerated) {
        return refusal{
            "InvalidSignatureException",
            fmt::format(
                "Signature not yet current: {} is still later than {} ({} + 5 min.)",
                date,
                stamp(now + tolerated),
                stamp(now)
            )};
    }
    return std::nullopt;
}

std::string expected_signature(
    const signed_request& what,
    const std::vector<std::string>& names,
    const std::vector<std::string>& scope,  // key id, day, region, service, end
    std::string_view secret
) {
    std::string request = "POST\n/\n\n";
    for (const auto& name : names)
        request += name + ":" + canonical(header_of(what, name)) + "\n";
    request += fmt::format("\n{}\n{}", fmt::join(names, ";"), hex(sha256(what.body)));
    const auto to_sign = fmt::format(
        "AWS4-HMAC-SHA256\n{}\n{}/{}/{}/{}\n{}",
        header_of(what, "x-amz-date"),
        scope[1],
        scope[2],
        scope[3],
        scope[4],
        hex(sha256(request))
    );
    std::string key = "AWS4" + std::string(secret);
    for (std::size_t i = 1; i < scope.size(); ++i)
        key = hmac(key, scope[i]);
    return hex(hmac(key, to_sign));
}

}  // namespace

std::string header_of(const signed_request& what, const std::string& name) {
    const auto found = what.headers.find(name);
    return found == what.headers.end() ? std::string{} : found->second;
}

std::optional<refusal> check_signature(const signed_request& what, std::string_view secret, wall_time now) {
    const auto authorization = header_of(what, "authorization");
    const auto date = header_of(what, "x-amz-date");
    if (authorization.empty() || date.empty())
        return refusal{"MissingAuthenticationTokenException", "Missing Authentication Token"};
    const auto scope = split(part_of(authorization, "Credential"), '/');
    const auto names = split(part_of(authorization, "SignedHeaders"), ';');
    const auto signature = part_of(authorization, "Signature");
    if (!authorization.starts_with("AWS4-HMAC-SHA256 ") || scope.size() != 5 || signature.empty()) {
        return refusal{
            "IncompleteSignatureException",
            "Authorization header requires 'Credential', 'Signature' and 'SignedHeaders' parameters."};
    }
    const bool scoped = scope[1] == date.substr(0, 8) && !scope[2].empty() && scope[3] == "kinesis" &&
                        scope[4] == "aws4_request";
    if (!scoped) {
        return refusal{
            "InvalidSignatureException", "Credential should be scoped to a valid day, region and service."};
    }
    for (const auto& [name, ignored] : what.headers) {
        const bool needed = name == "host" || name.starts_with("x-amz-");
        if (needed && std::ranges::find(names, name) == names.end()) {
            return refusal{
                "InvalidSignatureException",
                "'" + name + "' must be a 'SignedHeader' in the AWS Authorization."};
        }
    }
    if (auto late = check_time(date, now)) return late;
    if (!std::ranges::is_sorted(names) ||
        (!secret.empty() && signature != expected_signature(what, names, scope, secret))) {
        return refusal{
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided."};
    }
    return std::nullopt;
}

}  // namespace millrace::kinesis_fake
