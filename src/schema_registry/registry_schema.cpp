#include "registry_schema.hpp"

#include <algorithm>

namespace millrace::registry {

std::string_view name_of(schema_type type) noexcept {
    switch (type) {
        case schema_type::avro:
            return "AVRO";
        case schema_type::protobuf:
            return "PROTOBUF";
        case schema_type::json:
            break;
    }
    return "JSON";
}

std::optional<schema_type> schema_type_of(std::string_view name) noexcept {
    for (const auto type : {schema_type::avro, schema_type::protobuf, schema_type::json})
        if (name == name_of(type)) return type;
    return std::nullopt;
}

const registered_schema* resolved_schema::find(const schema_reference& which) const noexcept {
    const auto at = std::find_if(references.begin(), references.end(), [&](const auto& each) {
        return each->version == which.version && each->subject == which.subject;
    });
    return at == references.end() ? nullptr : at->get();
}

}  // namespace millrace::registry
