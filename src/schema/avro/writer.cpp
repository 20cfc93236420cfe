#include "avro/writer.hpp"

#include "avro/values.hpp"
#include "json/decimal.hpp"
#include "json/utf8.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <optional>

namespace millrace::schema {

namespace {

using fault_kind = avro_fault::kind;

std::optional<std::int64_t> whole_value(std::string_view text, bool integral) {
    if (integral) {
        std::int64_t value = 0;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
        return read.ec == std::errc{} ? std::optional(value) : std::nullopt;
    }
    const auto number = decimal::read(text);
    return number ? number->to_int64() : std::nullopt;
}

template <class Float>
std::optional<Float> special_number(std::string_view text) {
    using limits = std::numeric_limits<Float>;
    if (text == "NaN") return limits::quiet_NaN();
    if (text == "Infinity" || text == "INF") return limits::infinity();
    if (text == "-Infinity" || text == "-INF") return -limits::infinity();
    return std::nullopt;
}

template <class Float>
std::optional<Float> floating_value(std::string_view text) {
    Float value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec == std::errc{}) return value;
    // Out of range is both too large and too small; what is too small is zero.
    const auto number = decimal::read(text);
    if (!number || static_cast<std::int64_t>(number->digits()) + number->exponent() > 0) return std::nullopt;
    return number->negative() ? -Float{0} : Float{0};
}

}  // namespace

avro_writer::avro_writer(
    const avro_plan& plan, const json_document& document, options how, scratch& kept, std::string& out
)
    : plan_(plan),
      document_(document),
      how_(how),
      kept_(kept),
      out_(out),
      tries_left_(1000 + 64 * document.size()),
      end_max_(
          how.bytes_max < std::numeric_limits<std::size_t>::max() - out.size()
              ? out.size() + how.bytes_max
              : std::numeric_limits<std::size_t>::max()
      ) {
    kept_.slots.clear();
    kept_.choices.clear();
}

bool avro_writer::refuse(fault_kind what, std::uint32_t node, index token, std::uint32_t detail) {
    fault_ = {what, node, token, detail};
    return false;
}

bool avro_writer::write(std::uint32_t node, index token) {
    if (tries_left_ == 0) return refuse(fault_kind::too_many_ways, node, token);
    --tries_left_;
    // Asked at each value: one that leaves out its fields may be a hundred thousand times as large as its
    // text.
    if (out_.size() > end_max_) return refuse(fault_kind::too_large, node, token);
    const auto& type = plan_.nodes[node];
    const auto& value = document_.at(token);
    switch (type.kind) {
        case avro_kind::null:
            return value.kind == json_kind::null || refuse(fault_kind::other_kind, node, token);
        case avro_kind::boolean:
            if (value.kind != json_kind::boolean) return refuse(fault_kind::other_kind, node, token);
            out_ += value.truth ? '\1' : '\0';
            return true;
        case avro_kind::int_:
        case avro_kind::long_:
            return integer(node, token);
        case avro_kind::float_:
            return floating<float>(node, token);
        case avro_kind::double_:
            return floating<double>(node, token);
        case avro_kind::string:
            return string(node, token);
        case avro_kind::bytes:
            return bytes(node, token);
        case avro_kind::fixed:
            return fixed(node, token);
        case avro_kind::enumeration:
            return enumeration(node, token);
        case avro_kind::array:
            return array(node, token);
        case avro_kind::map:
            return map(node, token);
        case avro_kind::record:
            return record(node, token);
        case avro_kind::union_:
            return union_value(node, token);
    }
    return refuse(fault_kind::other_kind, node, token);
}

void avro_writer::long_number(std::int64_t value) {
    auto rest = (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
    std::array<char, 10> bytes{};
    std::size_t n = 0;
    for (; rest >= 0x80U; rest >>= 7U)
        bytes[n++] = static_cast<char>(rest | 0x80U);
    bytes[n++] = static_cast<char>(rest);
    out_.append(bytes.data(), n);
}

bool avro_writer::integer(std::uint32_t node, index token) {
    const auto& value = document_.at(token);
    if (value.kind == json_kind::string && how_.readable && plan_.nodes[node].logical != avro_logical::none) {
        return temporal_text(node, token);
    }
    if (value.kind != json_kind::number) return refuse(fault_kind::other_kind, node, token);
    const auto text = document_.text(token);
    const auto number = whole_value(text, value.integral);
    if (number) return whole_number(node, token, *number);
    const auto exact = decimal::read(text);
    const bool whole = exact && exact->integral();
    return refuse(whole ? fault_kind::out_of_range : fault_kind::fraction, node, token);
}

bool avro_writer::whole_number(std::uint32_t node, index token, std::int64_t value) {
    const auto& type = plan_.nodes[node];
    using limits = std::numeric_limits<std::int32_t>;
    bool fits = type.kind == avro_kind::long_ || (value >= limits::min() && value <= limits::max());
    if (how_.readable && type.logical == avro_logical::time_millis) {
        fits = value >= 0 && value < day_seconds * 1000;
    } else if (how_.readable && type.logical == avro_logical::time_micros) {
        fits = value >= 0 && value < day_seconds * 1'000'000;
    }
    if (!fits) return refuse(fault_kind::out_of_range, node, token);
    long_number(value);
    return true;
}

bool avro_writer::temporal_text(std::uint32_t node, index token) {
    constexpr std::int64_t millis = 1000;
    constexpr std::int64_t micros = 1'000'000;
    const auto text = document_.text(token);
    std::optional<std::int64_t> value;
    switch (plan_.nodes[node].logical) {
        case avro_logical::date:
            value = read_date(text);
            break;
        case avro_logical::time_millis:
            value = read_time(text, millis);
            break;
        case avro_logical::time_micros:
            value = read_time(text, micros);
            break;
        case avro_logical::timestamp_millis:
            value = read_timestamp(text, millis, zone::required);
            break;
        case avro_logical::timestamp_micros:
            value = read_timestamp(text, micros, zone::required);
            break;
        case avro_logical::local_timestamp_millis:
            value = read_timestamp(text, millis, zone::absent);
            break;
        case avro_logical::local_timestamp_micros:
            value = read_timestamp(text, micros, zone::absent);
            break;
        default:
            break;
    }
    if (!value) return refuse(fault_kind::bad_text, node, token);
    return whole_number(node, token, *value);
}

template <class Float>
bool avro_writer::floating(std::uint32_t node, index token) {
    const auto& value = document_.at(token);
    std::optional<Float> number;
    if (value.kind == json_kind::number) {
        number = floating_value<Float>(document_.text(token));
        if (!number) return refuse(fault_kind::out_of_range, node, token);
    } else if (value.kind == json_kind::string) {
        number = special_number<Float>(document_.text(token));
        if (!number) return refuse(fault_kind::bad_text, node, token);
    } else {
        return refuse(fault_kind::other_kind, node, token);
    }
    using bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
    auto rest = std::bit_cast<bits>(*number);
    std::array<char, sizeof(Float)> bytes{};
    for (auto& byte : bytes) {
        byte = static_cast<char>(rest);
        rest >>= 8U;
    }
    out_.append(bytes.data(), bytes.size());
    return true;
}

bool avro_writer::string(std::uint32_t node, index token) {
    if (document_.at(token).kind != json_kind::string) return refuse(fault_kind::other_kind, node, token);
    const auto text = document_.text(token);
    if (how_.readable && plan_.nodes[node].logical == avro_logical::uuid && !is_uuid(text)) {
        return refuse(fault_kind::bad_text, node, token);
    }
    long_number(static_cast<std::int64_t>(text.size()));
    out_.append(text);
    return true;
}

void avro_writer::raw_characters(std::string_view text) {
    // Characters up to U+00FF take at most two bytes, of which the first holds the two high bits.
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned c = static_cast<unsigned char>(text[i]);
        if (c >= 0x80U) c = (c << 6U) | (static_cast<unsigned char>(text[++i]) & 0x3FU);
        out_ += static_cast<char>(c);
    }
}

namespace {

/// The number of bytes that the characters stand for; nothing when one is beyond U+00FF.
std::optional<std::size_t> raw_size(std::string_view text) {
    constexpr unsigned first_beyond = 0xC4;  // of U+0100
    std::size_t n = 0;
    for (const char c : text) {
        if (static_cast<unsigned char>(c) >= first_beyond) return std::nullopt;
        n += continues(c) ? 0U : 1U;
    }
    return n;
}

}  // namespace

bool avro_writer::bytes(std::uint32_t node, index token) {
    if (how_.readable && plan_.nodes[node].logical == avro_logical::decimal)
        return decimal_value(node, token);
    if (document_.at(token).kind != json_kind::string) return refuse(fault_kind::other_kind, node, token);
    const auto text = document_.text(token);
    const auto size = raw_size(text);
    if (!size) return refuse(fault_kind::bad_character, node, token);
    long_number(static_cast<std::int64_t>(*size));
    raw_characters(text);
    return true;
}

bool avro_writer::fixed(std::uint32_t node, index token) {
    const auto& type = plan_.nodes[node];
    if (how_.readable && type.logical == avro_logical::decimal) return decimal_value(node, token);
    const auto kind = document_.at(token).kind;
    if (how_.readable && type.logical == avro_logical::duration && kind == json_kind::object) {
        return duration(node, token);
    }
    if (kind != json_kind::string) return refuse(fault_kind::other_kind, node, token);
    const auto text = document_.text(token);
    const auto size = raw_size(text);
    if (!size) return refuse(fault_kind::bad_character, node, token);
    if (*size != type.count) return refuse(fault_kind::wrong_size, node, token);
    raw_characters(text);
    return true;
}

bool avro_writer::decimal_value(std::uint32_t node, index token) {
    const auto& type = plan_.nodes[node];
    const auto kind = document_.at(token).kind;
    if (kind != json_kind::number && kind != json_kind::string) {
        return refuse(fault_kind::other_kind, node, token);
    }
    const auto value = decimal::read(document_.text(token));
    if (!value) return refuse(fault_kind::bad_text, node, token);
    if (!value->zero()) {
        const std::int64_t zeros = value->exponent() + type.scale;
        if (zeros < 0) return refuse(fault_kind::too_precise, node, token);
        const std::int64_t digits = static_cast<std::int64_t>(value->digits()) + zeros;
        if (digits > type.precision) return refuse(fault_kind::too_long, node, token);
    }
    if (type.kind == avro_kind::fixed) {
        append_unscaled(out_, *value, type.scale, type.count);
        return true;
    }
    // The size stands before the bytes and is one byte for a decimal of up to 150 digits, the usual case.
    const std::size_t begin = out_.size();
    out_ += '\0';
    append_unscaled(out_, *value, type.scale, 0);
    const std::size_t size = out_.size() - begin - 1;
    if (size < 64) {
        out_[begin] = static_cast<char>(size << 1U);
        return true;
    }
    const auto number = out_.substr(begin + 1);
    out_.resize(begin);
    long_number(static_cast<std::int64_t>(size));
    out_.append(number);
    return true;
}

bool avro_writer::duration(std::uint32_t node, index token) {
    constexpr std::array<std::string_view, 3> names{"months", "days", "millis"};
    std::array<std::uint32_t, names.size()> parts{};
    std::array<bool, names.size()> seen{};
    for (index key = token + 1; key < document_.at(token).end; key = document_.at(key + 1).end) {
        const auto found = std::find(names.begin(), names.end(), document_.text(key));
        if (found == names.end()) return refuse(fault_kind::unknown_field, node, key);
        const auto place = static_cast<std::size_t>(found - names.begin());
        if (seen[place]) return refuse(fault_kind::doubled_key, node, key);
        seen[place] = true;
        const auto& value = document_.at(key + 1);
        if (value.kind != json_kind::number) return refuse(fault_kind::other_kind, node, key + 1);
        const auto number = whole_value(document_.text(key + 1), value.integral);
        if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max()) {
            return refuse(fault_kind::out_of_range, node, key + 1);
        }
        parts[place] = static_cast<std::uint32_t>(*number);
    }
    for (auto part : parts) {
        for (int i = 0; i < 4; ++i, part >>= 8U)
            out_ += static_cast<char>(part);
    }
    return true;
}

bool avro_writer::enumeration(std::uint32_t node, index token) {
    if (document_.at(token).kind != json_kind::string) return refuse(fault_kind::other_kind, node, token);
    const auto place = plan_.find_symbol(plan_.nodes[node], document_.text(token));
    if (place == avro_plan::none) return refuse(fault_kind::no_symbol, node, token);
    long_number(place);
    return true;
}

bool avro_writer::array(std::uint32_t node, index token) {
    const auto& value = document_.at(token);
    if (value.kind != json_kind::array) return refuse(fault_kind::other_kind, node, token);
    const auto items = plan_.nodes[node].first;
    if (value.size != 0) long_number(value.size);
    for (index item = token + 1; item < value.end; item = document_.at(item).end) {
        if (!write(items, item)) return false;
    }
    out_ += '\0';
    return true;
}

bool avro_writer::map(std::uint32_t node, index token) {
    const auto& value = document_.at(token);
    if (value.kind != json_kind::object) return refuse(fault_kind::other_kind, node, token);
    const auto doubled = document_.doubled_key(token);
    if (doubled != json_document::none) return refuse(fault_kind::doubled_key, node, doubled);
    const auto items = plan_.nodes[node].first;
    if (value.size != 0) long_number(value.size);
    for (index key = token + 1; key < value.end; key = document_.at(key + 1).end) {
        const auto text = document_.text(key);
        long_number(static_cast<std::int64_t>(text.size()));
        out_.append(text);
        if (!write(items, key + 1)) return false;
    }
    out_ += '\0';
    return true;
}

bool avro_writer::record(std::uint32_t node, index token) {
    if (document_.at(token).kind != json_kind::object) return refuse(fault_kind::other_kind, node, token);
    const auto& type = plan_.nodes[node];
    // The slots may move while the fields are written, so they are found by place.
    const std::size_t slots = kept_.slots.size();
    kept_.slots.resize(slots + type.count, json_document::none);
    bool fits = bind_fields(node, token, slots);
    for (std::uint32_t place = 0; fits && place < type.count; ++place) {
        const auto value = kept_.slots[slots + place];
        fits = value == json_document::none ? absent_field(node, token, place)
                                            : write(plan_.fields[type.first + place].node, value);
    }
    kept_.slots.resize(slots);
    return fits;
}

bool avro_writer::bind_fields(std::uint32_t node, index token, std::size_t slots) {
    const auto& type = plan_.nodes[node];
    std::uint32_t expected = 0;
    for (index key = token + 1; key < document_.at(token).end; key = document_.at(key + 1).end) {
        const auto name = document_.text(key);
        // Most writers keep the order of the schema.
        auto place = expected;
        if (place >= type.count || plan_.field_name(type, place) != name)
            place = plan_.find_field(type, name);
        if (place == avro_plan::none) {
            if (how_.ignore_unknown) continue;
            return refuse(fault_kind::unknown_field, node, key);
        }
        auto& slot = kept_.slots[slots + place];
        if (slot != json_document::none) return refuse(fault_kind::doubled_key, node, key);
        slot = key + 1;
        expected = place + 1;
    }
    return true;
}

bool avro_writer::absent_field(std::uint32_t node, index token, std::uint32_t place) {
    const auto number = plan_.nodes[node].first + place;
    const auto& field = plan_.fields[number];
    if (!field.has_default) return refuse(fault_kind::missing_field, node, token, place);
    if (field.default_size == avro_plan::none)
        return refuse(fault_kind::default_not_ready, node, token, number);
    out_.append(plan_.defaults, field.default_at, field.default_size);
    return true;
}

}  // namespace millrace::schema
