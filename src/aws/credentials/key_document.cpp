#include "credentials/key_document.hpp"

#include "credentials/origins.hpp"
#include "credentials/text.hpp"
#include "text/moment.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace millrace::aws {

namespace {

tl::unexpected<error> wrong(std::string_view source, std::string_view what) {
    return fail(errc::unavailable, fmt::format("{} {}", source, what), retry_advice::after_delay);
}

/// A member that is a string; empty when absent, null or of another kind.
std::string text_of(const boost::json::object& document, std::string_view name) {
    const auto* found = document.if_contains(name);
    if (found == nullptr || !found->is_string()) return {};
    return std::string(without_blanks(std::string_view(found->get_string())));
}

/// What stands for a failure: a word, never more of what the service said.
std::string code_of(const boost::json::object& document) {
    auto code = text_of(document, "Code");
    if (code.empty()) code = text_of(document, "code");
    const bool is_word = code.size() <= 64 && std::all_of(code.begin(), code.end(), [](char c) {
                             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
                         });
    return is_word ? code : "a code that is no word";
}

bool says_version_1(const boost::json::object& document) {
    const auto* version = document.if_contains("Version");
    if (version == nullptr) return false;
    if (version->is_int64()) return version->get_int64() == 1;
    return version->is_uint64() && version->get_uint64() == 1;
}

result<std::optional<wall_time>> end_of(const boost::json::object& document, std::string_view source) {
    const auto* found = document.if_contains("Expiration");
    if (found == nullptr || found->is_null()) return std::nullopt;
    const auto moment = read_moment(text_of(document, "Expiration"));
    if (!moment) return wrong(source, "gave keys with an Expiration that is no time");
    return moment;
}

}  // namespace

result<aws_keys> read_keys(std::string_view json, key_dialect dialect, std::string_view source) {
    if (json.size() > key_document_bytes_max) return wrong(source, "gave more than keys are long");
    boost::json::error_code broken;
    const auto parsed = boost::json::parse(json, broken);
    if (broken || !parsed.is_object()) return wrong(source, "gave something that is no JSON object");
    const auto& document = parsed.get_object();
    if (dialect == key_dialect::program && !says_version_1(document)) {
        return wrong(source, "gave JSON without \"Version\": 1; it must print what credential_process needs");
    }
    if (const auto code = code_of(document); !code.empty() && code != "Success")
        return wrong(source, fmt::format("has no keys: it says {}", code));
    aws_keys keys;
    keys.access_key = text_of(document, "AccessKeyId");
    keys.secret_key = text_of(document, "SecretAccessKey");
    keys.session_token = text_of(document, dialect == key_dialect::program ? "SessionToken" : "Token");
    if (auto fine = check_keys(keys, source); !fine) return wrong(source, "gave JSON without usable keys");
    auto end = end_of(document, source);
    if (!end) return tl::unexpected(end.error());
    if (dialect == key_dialect::agent && !*end) return wrong(source, "gave keys without an Expiration");
    keys.expires = *end;
    return keys;
}

}  // namespace millrace::aws
