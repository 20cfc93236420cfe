#include "kinesis/cbor.hpp"

#include "kinesis/base64.hpp"

#include <cmath>
#include <limits>

#include <cbor.h>

namespace millrace::aws::kinesis {

namespace {

constexpr int tags_max = 4;
constexpr std::uint64_t integer_max = std::numeric_limits<std::int64_t>::max();
constexpr double milliseconds_max = 1e15;  // the year 33,658

}  // namespace

void cbor_writer::head(unsigned major, std::uint64_t value) {
    const auto first = static_cast<unsigned char>(major << 5U);
    const auto push = [this](std::uint64_t byte) { out_.push_back(static_cast<char>(byte & 0xffU)); };
    if (value < 24) return push(first | value);
    const int bytes = value <= 0xff ? 1 : value <= 0xffff ? 2 : value <= 0xffffffff ? 4 : 8;
    push(first | (bytes == 1 ? 24U : bytes == 2 ? 25U : bytes == 4 ? 26U : 27U));
    for (int at = bytes - 1; at >= 0; --at)
        push(value >> (8U * static_cast<unsigned>(at)));
}

void cbor_writer::string(unsigned major, std::string_view bytes) {
    head(major, bytes.size());
    out_.append(bytes);
}

void cbor_writer::integer(std::int64_t value) {
    if (value >= 0) return head(0, static_cast<std::uint64_t>(value));
    head(1, static_cast<std::uint64_t>(-(value + 1)));
}

void cbor_writer::time(wall_time value) {
    head(6, 1);
    integer(value.time_since_epoch().count());
}

/// libcbor decodes one item's head at a time into `item_`.
struct cbor_reader::callbacks {
    template <kind Is>
    static void number(void* into, std::uint64_t value) {
        *static_cast<item*>(into) = {.is = Is, .number = value};
    }
    template <kind Is, class T>
    static void small_number(void* into, T value) {
        number<Is>(into, value);
    }
    template <kind Is>
    static void string(void* into, cbor_data data, std::size_t size) {
        *static_cast<item*>(into) = {.is = Is, .bytes = {reinterpret_cast<const char*>(data), size}};
    }
    template <kind Is>
    static void endless(void* into) {
        *static_cast<item*>(into) = {.is = Is, .endless = true};
    }
    template <kind Is>
    static void length(void* into, std::size_t size) {
        *static_cast<item*>(into) = {.is = Is, .number = size};
    }
    template <class T>
    static void real(void* into, T value) {
        *static_cast<item*>(into) = {.is = kind::real, .real = static_cast<double>(value)};
    }
    template <kind Is>
    static void plain(void* into) {
        *static_cast<item*>(into) = {.is = Is};
    }
    static void boolean(void* into, bool value) {
        *static_cast<item*>(into) = {.is = kind::simple, .number = value ? 1U : 0U};
    }

    static const cbor_callbacks table;
};

const cbor_callbacks cbor_reader::callbacks::table = [] {
    cbor_callbacks c = cbor_empty_callbacks;
    c.uint8 = small_number<kind::natural, std::uint8_t>;
    c.uint16 = small_number<kind::natural, std::uint16_t>;
    c.uint32 = small_number<kind::natural, std::uint32_t>;
    c.uint64 = small_number<kind::natural, std::uint64_t>;
    c.negint8 = small_number<kind::negative, std::uint8_t>;
    c.negint16 = small_number<kind::negative, std::uint16_t>;
    c.negint32 = small_number<kind::negative, std::uint32_t>;
    c.negint64 = small_number<kind::negative, std::uint64_t>;
    c.byte_string = [](void* into, cbor_data data, auto size) { string<kind::bytes>(into, data, size); };
    c.byte_string_start = endless<kind::bytes>;
    c.string = [](void* into, cbor_data data, auto size) { string<kind::text>(into, data, size); };
    c.string_start = endless<kind::text>;
    c.array_start = [](void* into, auto size) { length<kind::list>(into, size); };
    c.indef_array_start = endless<kind::list>;
    c.map_start = [](void* into, auto size) { length<kind::map>(into, size); };
    c.indef_map_start = endless<kind::map>;
    c.tag = small_number<kind::tag, std::uint64_t>;
    c.float2 = real<float>;
    c.float4 = real<float>;
    c.float8 = real<double>;
    c.null = plain<kind::null>;
    c.undefined = plain<kind::null>;
    c.boolean = boolean;
    c.indef_break = plain<kind::stop>;
    return c;
}();

bool cbor_reader::nonsense() noexcept {
    failed_ = true;
    return false;
}

bool cbor_reader::take() {
    if (failed_) return false;
    if (std::exchange(held_, false)) return true;
    for (int tags = 0; tags <= tags_max; ++tags) {
        item_ = {};
        const auto* from = reinterpret_cast<const unsigned char*>(bytes_.data()) + at_;
        const auto read = cbor_stream_decode(from, bytes_.size() - at_, &callbacks::table, &item_);
        if (read.status != CBOR_DECODER_FINISHED || item_.is == kind::none) return nonsense();
        at_ += read.read;
        if (item_.is != kind::tag) return true;
    }
    return nonsense();
}

bool cbor_reader::look() {
    if (!take()) return false;
    held_ = true;
    return true;
}

bool cbor_reader::enter(kind wanted, length& left) {
    if (!take()) return false;
    if (item_.is != wanted || ++depth_ > depth_max) return nonsense();
    left = {item_.number, item_.endless};
    return true;
}

bool cbor_reader::more(length& left) {
    if (!left.endless) return !failed_ && left.count-- > 0;
    if (!look()) return false;
    if (item_.is != kind::stop) return true;
    held_ = false;
    return false;
}

bool cbor_reader::leave() noexcept {
    --depth_;
    return !failed_;
}

bool cbor_reader::null() {
    if (!look() || item_.is != kind::null) return false;
    held_ = false;
    return true;
}

bool cbor_reader::view(kind wanted, std::string_view& out) {
    if (!take()) return false;
    if (item_.is != wanted || item_.endless) return nonsense();
    out = item_.bytes;
    return true;
}

bool cbor_reader::text(std::string_view& out) {
    return view(kind::text, out);
}

bool cbor_reader::blob(std::string_view& out) {
    if (!look()) return false;
    if (item_.is != kind::text) return view(kind::bytes, out);
    std::string_view text;
    if (!view(kind::text, text)) return false;
    auto* const place = bytes_.data() + (text.data() - bytes_.data());
    const auto size = write_from_base64(place, text);
    if (!size) return nonsense();
    out = {place, *size};
    return true;
}

bool cbor_reader::text(std::string& out) {
    if (!take()) return false;
    if (item_.is != kind::text) return nonsense();
    out.assign(item_.bytes);
    if (!item_.endless) return true;
    while (take() && item_.is == kind::text && !item_.endless)
        out.append(item_.bytes);
    return item_.is == kind::stop ? !failed_ : nonsense();
}

bool cbor_reader::integer(std::int64_t& out) {
    if (!take()) return false;
    const bool whole = item_.is == kind::natural || item_.is == kind::negative;
    if (!whole || item_.number > integer_max) return nonsense();
    const auto magnitude = static_cast<std::int64_t>(item_.number);
    out = item_.is == kind::natural ? magnitude : -1 - magnitude;
    return true;
}

bool cbor_reader::time(wall_time& out) {
    if (!look()) return false;
    if (item_.is == kind::real) {
        const auto since = item_.real * 1000;
        if (!(std::abs(since) <= milliseconds_max)) return nonsense();
        held_ = false;
        out = wall_time{milliseconds{std::llround(since)}};
        return true;
    }
    std::int64_t since = 0;
    if (!integer(since)) return false;
    if (std::abs(static_cast<double>(since)) > milliseconds_max) return nonsense();
    out = wall_time{milliseconds{since}};
    return true;
}

bool cbor_reader::skip_parts(kind of) {
    while (take() && item_.is == of && !item_.endless) {
    }
    return item_.is == kind::stop ? !failed_ : nonsense();
}

bool cbor_reader::skip() {
    if (!look()) return false;
    switch (item_.is) {
        case kind::map:
            return map([this](std::string_view) { return skip(); });
        case kind::list:
            return list([this] { return skip(); });
        case kind::bytes:
        case kind::text:
            held_ = false;
            return item_.endless ? skip_parts(item_.is) : true;
        case kind::none:
        case kind::tag:
        case kind::stop:
            return nonsense();
        default:
            held_ = false;
            return true;
    }
}

}  // namespace millrace::aws::kinesis
