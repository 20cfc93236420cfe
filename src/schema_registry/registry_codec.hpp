/// The API of a schema registry, as Confluent defined it and others speak it: requests and replies as bytes.
///
/// Pure functions. Replies are read strictly: a member of the wrong type, or beyond a limit, makes the reply
/// `corrupt`; members that are not known are left out of account. No error shows a body.
#pragma once

#include "registry_schema.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace millrace::registry {

/// A version of a subject; without a number the latest one.
struct ask_version {
    std::string subject;
    std::optional<std::int32_t> version;
};

struct ask_id {
    std::uint32_t id{0};
};

/// The id and version under which a subject has this very schema.
struct ask_text {
    std::string subject;
    std::shared_ptr<const schema_text> schema;
};

/// The same, and puts the schema there when the subject has it not. May be sent twice.
struct register_text {
    std::string subject;
    std::shared_ptr<const schema_text> schema;
};

using question = std::variant<ask_version, ask_id, ask_text, register_text>;

/// For people: `the latest version of the subject "orders-value"`.
[[nodiscard]] std::string describe(const question& what);

struct wire_request {
    std::string method;
    std::string path;  ///< Behind the registry's base URL, with the leading "/"; percent-encoded.
    std::string body;  ///< JSON, or empty.

    bool operator==(const wire_request&) const = default;
};

/// The media type of bodies, and the one that is asked for.
inline constexpr std::string_view content_type = "application/vnd.schemaregistry.v1+json";
inline constexpr std::string_view accepted_types =
    "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json; q=0.9, application/json; "
    "q=0.5";

/// `invalid_argument` for a subject that cannot be part of a path: empty, longer than 1,000 bytes, not UTF-8,
/// with control characters, or "." or "..".
[[nodiscard]] result<void> check_subject(std::string_view subject);

/// `invalid_argument` also for a version or id below 1.
[[nodiscard]] result<wire_request> encode(const question& what);

struct reply_limits {
    std::size_t schema_bytes_max{std::size_t{1} << 20};  ///< Of one schema's text.
    std::size_t references_max{200};                     ///< That one schema names itself.
};

/// The body of a reply of status 200.
[[nodiscard]] result<registered_schema> decode(
    const question& what, std::string_view body, const reply_limits& limits = {}
);

/// What a registry says of a request that it refuses. Never fails: what cannot be read is absent.
struct refusal {
    std::optional<std::int64_t> error_code;
    std::string message;  ///< One line, cut to 1,000 bytes, as it came otherwise.

    bool operator==(const refusal&) const = default;
};
[[nodiscard]] refusal read_refusal(std::string_view body);

}  // namespace millrace::registry
