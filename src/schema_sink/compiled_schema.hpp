/// Schemas of a registry made ready for use, each once however many topics have it.
///
/// Kept for as long as somebody uses it. Not thread-safe.
#pragma once

#include "avro/schema.hpp"
#include "json_schema/schema.hpp"
#include "registry_schema.hpp"

#include <millrace/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <variant>

namespace millrace::schema {

struct compiled_schema {
    std::variant<avro_schema, json_schema> plan;

    [[nodiscard]] std::size_t bytes() const noexcept {
        return std::visit([](const auto& of) { return of.bytes(); }, plan);
    }
};

using compiled_pointer = std::shared_ptr<const compiled_schema>;

class compiled_schemas {
public:
    /// Of a schema that is Avro or JSON Schema. The error says where it cannot be read.
    [[nodiscard]] result<compiled_pointer> get(const registry::resolved_schema& which);

    /// Of those in use.
    [[nodiscard]] std::size_t bytes() const noexcept { return *bytes_; }

private:
    std::unordered_map<std::uint32_t, std::weak_ptr<const compiled_schema>> by_id_;
    std::size_t tidy_at_{64};
    std::shared_ptr<std::size_t> bytes_ = std::make_shared<std::size_t>(0);
};

}  // namespace millrace::schema
