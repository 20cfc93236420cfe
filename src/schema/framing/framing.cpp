#include "framing/framing.hpp"

#include "avro/values.hpp"
#include "json/utf8.hpp"

#include <charconv>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

void append_zigzag(std::string& out, std::int32_t value) {
    auto rest = (static_cast<std::uint32_t>(value) << 1U) ^ static_cast<std::uint32_t>(value >> 31);
    for (; rest >= 0x80U; rest >>= 7U)
        out += static_cast<char>(rest | 0x80U);
    out += static_cast<char>(rest);
}

}  // namespace

void append_schema_id(std::string& out, std::int32_t id) {
    out += '\0';
    const auto bits = static_cast<std::uint32_t>(id);
    for (unsigned shift = 32; shift > 0;) {
        shift -= 8;
        out += static_cast<char>(bits >> shift);
    }
}

void append_message_index(std::string& out, std::span<const std::int32_t> place) {
    if (place.size() == 1 && place.front() == 0) {
        out += '\0';
        return;
    }
    append_zigzag(out, static_cast<std::int32_t>(place.size()));
    for (const auto step : place)
        append_zigzag(out, step);
}

std::string guid_header(const schema_guid& guid) {
    std::string header = "\1";
    for (const auto byte : guid)
        header += static_cast<char>(byte);
    return header;
}

result<schema_guid> read_guid(std::string_view text) {
    if (!is_uuid(text)) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "\"{}\" is no GUID of a schema; expected 32 hexadecimal digits in five groups",
                shortened(text)
            )
        );
    }
    schema_guid guid{};
    std::size_t at = 0;
    for (auto& byte : guid) {
        if (text[at] == '-') ++at;
        std::from_chars(text.data() + at, text.data() + at + 2, byte, 16);
        at += 2;
    }
    return guid;
}

result<std::vector<std::int32_t>> read_message_index(std::string_view text) {
    constexpr std::size_t depth_max = 16;
    std::vector<std::int32_t> place;
    auto rest = text;
    for (bool more = true; more;) {
        const auto slash = rest.find('/');
        const auto step = rest.substr(0, slash);
        auto& number = place.emplace_back();
        const auto read = std::from_chars(step.data(), step.data() + step.size(), number);
        const bool whole = read.ec == std::errc{} && read.ptr == step.data() + step.size();
        if (!whole || number < 0 || place.size() > depth_max) {
            return fail(
                errc::invalid_config,
                fmt::format(
                    "\"{}\" is no place of a message; expected its number in the file, from 0, then /NUMBER "
                    "for each message "
                    "it is nested in, such as 0 or 1/0",
                    shortened(text)
                )
            );
        }
        more = slash != std::string_view::npos;
        if (more) rest.remove_prefix(slash + 1);
    }
    return place;
}

}  // namespace millrace::schema
