#include "record/bytes_text.hpp"
#include "registry_codec.hpp"
#include "registry_failure.hpp"
#include "targets.hpp"

#include <memory>
#include <string>

namespace millrace::fuzz {

namespace {

using namespace registry;

void require_fit(const registered_schema& read, const reply_limits& limits) {
    require(read.id >= 1 && read.id <= 2'147'483'647, "an id fits its four bytes");
    require(read.schema != nullptr, "what was read has a schema");
    require(read.schema->references.size() <= limits.references_max, "references are bounded");
    require(read.schema->text.size() <= limits.schema_bytes_max, "a schema is bounded");
    for (const auto& each : read.schema->references) {
        require(encode(ask_version{each.subject, each.version}).has_value(), "a reference can be asked for");
    }
    require(encode(register_text{"s", read.schema}).has_value(), "a schema that was read can be registered");
}

void require_judged(const question& what, std::string_view body) {
    for (const int status : {204, 302, 400, 401, 404, 409, 422, 429, 500}) {
        const auto failure = judge(what, http_reply{status, {}, std::string(body)}, "http://r");
        require(!failure.why.detail.empty(), "a refusal says why");
        require(failure.why.detail.size() < 3'000, "a refusal is short");
        require(is_utf8(failure.why.detail), "a refusal can be read");
    }
}

}  // namespace

/// The first byte says what was asked, the rest is what came back.
void schema_registry_replies(std::string_view bytes) {
    if (bytes.empty()) return;
    const reply_limits limits{.schema_bytes_max = 200, .references_max = 3};
    const auto own = std::make_shared<const schema_text>(schema_text{schema_type::json, "{}", {}});
    const question all[] = {
        ask_version{"s", std::nullopt},
        ask_version{"s", 1},
        ask_id{1},
        ask_text{"s", own},
        register_text{"s", own}};
    const auto& what = all[static_cast<unsigned char>(bytes.front()) % 5];
    const auto body = bytes.substr(1);
    if (const auto read = decode(what, body, limits)) {
        require_fit(*read, limits);
    } else {
        require(read.error().code == errc::corrupt, "a reply that cannot be read is corrupt");
        require(read.error().detail.size() < 1'000, "why is short");
    }
    require_judged(what, body);
    const std::string subject(bytes.substr(0, 2'000));
    if (const auto sent = encode(ask_version{subject, std::nullopt})) {
        require(sent->path.find_first_of(" ?#\\\r\n") == std::string::npos, "a path is one path");
        require(check_subject(subject).has_value(), "only a possible subject is sent");
    } else {
        require(is_utf8(sent.error().detail), "why can be read");
    }
}

}  // namespace millrace::fuzz
