#include "avro/names.hpp"

namespace millrace::schema {

bool is_avro_name(std::string_view name) noexcept {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    if (name.empty() || !letter(name.front())) return false;
    for (const char c : name) {
        if (!letter(c) && (c < '0' || c > '9')) return false;
    }
    return true;
}

bool is_avro_full_name(std::string_view name) noexcept {
    for (;;) {
        const auto dot = name.find('.');
        if (!is_avro_name(name.substr(0, dot))) return false;
        if (dot == std::string_view::npos) return true;
        name.remove_prefix(dot + 1);
    }
}

std::optional<avro_kind> primitive_of(std::string_view name) noexcept {
    for (const auto kind :
         {avro_kind::null,
          avro_kind::boolean,
          avro_kind::int_,
          avro_kind::long_,
          avro_kind::float_,
          avro_kind::double_,
          avro_kind::bytes,
          avro_kind::string}) {
        if (name == name_of(kind)) return kind;
    }
    return std::nullopt;
}

std::string full_name(std::string_view name, std::string_view space) {
    if (space.empty() || name.find('.') != std::string_view::npos) return std::string(name);
    return std::string(space) + "." + std::string(name);
}

std::string_view namespace_of(std::string_view full_name) noexcept {
    const auto dot = full_name.rfind('.');
    return dot == std::string_view::npos ? std::string_view{} : full_name.substr(0, dot);
}

}  // namespace millrace::schema
