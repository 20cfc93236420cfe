/// Schemas as a registry keeps them. Plain data; immutable once shared, and then fit for any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::registry {

enum class schema_type : std::uint8_t { avro, protobuf, json };

/// As the registry's API writes it: "AVRO", "PROTOBUF", "JSON".
[[nodiscard]] std::string_view name_of(schema_type type) noexcept;
[[nodiscard]] std::optional<schema_type> schema_type_of(std::string_view name) noexcept;

/// Another schema that a schema needs. What `name` is depends on the type: the full name of an Avro type, the
/// path of a Protobuf import, the URI of a JSON `$ref`.
struct schema_reference {
    std::string name;
    std::string subject;
    std::int32_t version{0};  ///< From 1.

    bool operator==(const schema_reference&) const = default;
};

/// What is registered and looked up.
struct schema_text {
    schema_type type{schema_type::avro};
    std::string text;
    std::vector<schema_reference> references;

    bool operator==(const schema_text&) const = default;
};

struct registered_schema {
    std::uint32_t id{0};      ///< From 1, as in the four bytes before a value.
    std::string guid;         ///< 36 characters; empty where the registry gives none.
    std::string subject;      ///< Empty for a schema that was asked for by its id.
    std::int32_t version{0};  ///< Of the subject; 0 where the reply does not tell it.
    std::shared_ptr<const schema_text> schema;
};

/// A schema with all that it needs, directly or not.
struct resolved_schema {
    std::shared_ptr<const registered_schema> self;

    /// Each once, and behind those that it needs itself. A `schema_reference` means the one of its subject
    /// and version.
    std::vector<std::shared_ptr<const registered_schema>> references;

    /// Null when it is not one of them.
    [[nodiscard]] const registered_schema* find(const schema_reference& which) const noexcept;
};

}  // namespace millrace::registry
