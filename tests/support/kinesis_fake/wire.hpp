/// Bodies of requests and replies as one tree, and the two forms it has on the wire.
///
/// Written apart from the codecs of the library, so that a mistake there is not made here, too. Blobs come as
/// base64 and times as seconds in JSON; as bytes and as tagged milliseconds in CBOR.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace::kinesis_fake {

struct value;
using value_list = std::vector<value>;
struct member;
using value_map = std::vector<member>;

struct blob {
    std::string bytes;
    bool operator==(const blob&) const = default;
};
struct moment {
    std::int64_t milliseconds{0};
    bool operator==(const moment&) const = default;
};

struct value {
    std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, blob, moment, value_list, value_map>
        is;

    [[nodiscard]] bool operator==(const value&) const;
};

/// Of a map.
struct member {
    member(std::string called, value with) : name(std::move(called)), is(std::move(with)) {}
    bool operator==(const member&) const = default;

    std::string name;
    value is;
};

/// The member of a map; null when it is missing or null, or when `in` is no map.
[[nodiscard]] const value* find(const value& in, std::string_view name);

enum class wire_form : std::uint8_t { json, cbor };

/// Nothing when it is malformed or nested deeper than 16 levels.
[[nodiscard]] std::optional<value> decode(wire_form form, std::string_view body);

/// `open_ended`: CBOR's maps and lists without a length before them, as the service itself writes.
[[nodiscard]] std::string encode(wire_form form, const value& what, bool open_ended = false);

/// How the wire gives what JSON has no type for.
[[nodiscard]] std::optional<std::string> as_blob(const value& what);
[[nodiscard]] std::optional<std::int64_t> as_milliseconds(const value& what);

}  // namespace millrace::kinesis_fake
