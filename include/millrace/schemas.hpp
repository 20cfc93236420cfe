/// What is done to the values and keys of events on their way into Kafka, and the registry that has their
/// schemas.
///
/// Plain data. `relay_settings::schemas` takes it; docs/schemas.md says what each choice does to which bytes.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

namespace schema {

enum class coding_mode : std::uint8_t {
    none,   ///< The bytes as they are.
    frame,  ///< Already encoded: only the schema is named.
    avro,   ///< JSON text that is encoded as Avro.
    json    ///< JSON text that is checked against a JSON Schema, then framed.
};

enum class schema_format : std::uint8_t { avro, protobuf, json };

enum class subject_strategy : std::uint8_t {
    topic,             ///< `<topic>-value`, `<topic>-key`
    record,            ///< the full name of the type
    topic_and_record,  ///< `<topic>-<full name of the type>`
    given
};

enum class id_place : std::uint8_t {
    prefix,  ///< 0x00 and the id before the value.
    header   ///< The GUID in a header; only where the registry gives GUIDs.
};

enum class version_choice : std::uint8_t {
    latest,
    fixed,
    header  ///< A header of the row holds the number; it is taken off the record.
};

enum class union_style : std::uint8_t {
    avro,  ///< null, or an object with one member: the branch's name and the value.

    /// The value alone. Of the branches that take a value of its kind, the most specific that fits:
    /// - a number without point and exponent: int, long, decimal, double, float; with one: decimal, double,
    ///   float, int, long;
    /// - a string: enum, uuid, date, time and timestamp, decimal, fixed, string, bytes, double, float;
    /// - an object: record, duration, map. Among equals the first in the schema.
    plain
};

enum class logical_values : std::uint8_t {
    readable,
    avro  ///< Exactly Avro's JSON encoding: logical types as the type that they are built on.
};

/// What is done to a key or a value.
struct coding_rule {
    coding_mode mode{coding_mode::none};

    /// Only of `frame`; of the other modes it follows from the mode.
    schema_format format{schema_format::avro};

    id_place place{id_place::prefix};

    subject_strategy subject{subject_strategy::topic};
    std::string given_subject;  ///< Of `subject_strategy::given`.

    /// The full name of the type, for the strategies that use it; with a schema file it may be empty, and the
    /// name is that of the file's schema.
    std::string record_name;

    version_choice version{version_choice::latest};
    std::int32_t fixed_version{0};  ///< From 1, of `version_choice::fixed`.
    std::string version_header;     ///< Of `version_choice::header`.

    union_style unions{union_style::avro};             ///< Of `avro`.
    logical_values logical{logical_values::readable};  ///< Of `avro`.
    bool ignore_unknown_fields{false};                 ///< Of `avro`.
    std::vector<std::int32_t> message_index{0};        ///< Of `frame` with Protobuf.

    /// Registers the schema of `schema_file` under the subject when it is not there. Never without.
    bool auto_register{false};
    std::string schema_file;

    bool operator==(const coding_rule&) const = default;
};

struct topic_rule {
    /// A topic, or a pattern: `*` stands for any characters, `?` for one.
    std::string topic;
    coding_rule value;
    coding_rule key;

    bool operator==(const topic_rule&) const = default;
};

}  // namespace schema

/// How a schema registry is reached.
struct registry_access {
    /// Base URLs, each with its path, such as "http://registry:8081" or "https://host/apis/ccompat/v7";
    /// without user and password. 1 to 16, in the order in which they are tried.
    std::vector<std::string> urls;

    /// For basic authentication; or a token for bearer authentication. Sent to every address, never shown.
    std::string user;
    std::string password;
    std::string token;

    /// PEM files: the authorities to trust (empty: the system's), and with which this side shows who it is.
    /// Certificate and host name are always verified.
    std::string ca_file;
    std::string client_certificate_file;
    std::string client_key_file;
    std::string client_key_password;

    milliseconds connect_timeout{3'000};   ///< For name, connection and TLS together; 1 ms to 10 min.
    milliseconds request_timeout{10'000};  ///< For the whole of one request at one address; 1 ms to 10 min.
};

struct schema_settings : registry_access {
    /// The first rule that matches a topic decides; without one nothing is done.
    std::vector<schema::topic_rule> rules;

    /// A new latest version is used by then at the latest. 1 s to 24 h.
    milliseconds latest_time{60'000};

    /// Of schemas as text, and of the same made ready for use, each.
    std::size_t cache_bytes{std::size_t{64} << 20};

    [[nodiscard]] bool empty() const noexcept { return rules.empty() && urls.empty(); }

    /// `invalid_config` says which setting or rule is wrong, without showing secrets. Reads no file.
    [[nodiscard]] result<void> validate() const;
};

/// How a relay fares with its registry. Totals since the start, and gauges.
struct schema_status {
    std::uint64_t requests{0};  ///< Sent to the registry.
    std::uint64_t answers{0};   ///< Schemas that came.
    struct failures {
        std::string
            kind;  ///< Such as `unreachable` or `no_such_subject`; docs/schema-registry.md lists them.
        std::uint64_t count{0};
    };
    std::vector<failures> failed;   ///< Of each kind.
    std::uint64_t cached{0};        ///< Schemas, by subject and version.
    std::uint64_t cached_bytes{0};  ///< With what was made of them.
    std::uint64_t stale_uses{0};    ///< Uses of a latest version whose time was over.
    std::uint64_t dropped{0};       ///< Schemas that had to go for others.
    std::uint64_t wanted{0};        ///< Schemas that are waited for now.
    std::string trouble;            ///< Why the registry gives none now; empty while it does.
};

}  // namespace millrace
