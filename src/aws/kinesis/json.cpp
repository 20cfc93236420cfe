#include "kinesis/json.hpp"

#include "kinesis/base64.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/format.h>

namespace millrace::aws::kinesis {

namespace {

constexpr double milliseconds_max = 1e15;  // the year 33,658

std::string_view view_of(const boost::json::string& text) {
    return {text.data(), text.size()};
}

}  // namespace

void json_writer::separate() {
    if (!std::exchange(first_, false)) out_.push_back(',');
}

void json_writer::open(char bracket) {
    separate();
    out_.push_back(bracket);
    first_ = true;
}

void json_writer::close(char bracket) {
    out_.push_back(bracket);
    first_ = false;
}

void json_writer::quoted(std::string_view value) {
    out_.push_back('"');
    for (const char c : value) {
        if (c == '"' || c == '\\') {
            out_.push_back('\\');
            out_.push_back(c);
        } else if (static_cast<unsigned char>(c) < 0x20) {
            fmt::format_to(std::back_inserter(out_), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out_.push_back(c);
        }
    }
    out_.push_back('"');
}

void json_writer::key(std::string_view name) {
    separate();
    quoted(name);
    out_.push_back(':');
    first_ = true;
}

void json_writer::text(std::string_view value) {
    separate();
    quoted(value);
}

void json_writer::blob(std::string_view bytes) {
    separate();
    out_.push_back('"');
    append_base64(out_, bytes);
    out_.push_back('"');
}

void json_writer::integer(std::int64_t value) {
    separate();
    fmt::format_to(std::back_inserter(out_), "{}", value);
}

void json_writer::time(wall_time value) {
    separate();
    const auto since = value.time_since_epoch().count();
    fmt::format_to(
        std::back_inserter(out_),
        "{}{}.{:03}",
        since < 0 ? "-" : "",
        std::abs(since / 1000),
        std::abs(since % 1000)
    );
}

bool json_reader::text(std::string& out) const {
    const auto* const text = at_->if_string();
    if (text == nullptr) return false;
    out.assign(view_of(*text));
    return true;
}

bool json_reader::text(std::string_view& out) {
    const auto* const text = at_->if_string();
    if (text == nullptr || kept_->size() + text->size() > kept_->capacity()) return false;
    const auto from = kept_->size();
    kept_->append(view_of(*text));
    out = std::string_view(*kept_).substr(from);
    return true;
}

bool json_reader::blob(std::string_view& out) {
    const auto* const text = at_->if_string();
    if (text == nullptr || kept_->size() + text->size() > kept_->capacity()) return false;
    const auto from = kept_->size();
    if (!append_from_base64(*kept_, view_of(*text))) return false;
    out = std::string_view(*kept_).substr(from);
    return true;
}

bool json_reader::integer(std::int64_t& out) const {
    const auto* const whole = at_->if_int64();
    if (whole == nullptr) return false;
    out = *whole;
    return true;
}

bool json_reader::time(wall_time& out) const {
    double seconds = 0;
    if (const auto* real = at_->if_double()) {
        seconds = *real;
    } else if (const auto* whole = at_->if_int64()) {
        seconds = static_cast<double>(*whole);
    } else {
        return false;
    }
    const auto since = seconds * 1000;
    if (!(std::abs(since) <= milliseconds_max)) return false;
    out = wall_time{milliseconds{std::llround(since)}};
    return true;
}

}  // namespace millrace::aws::kinesis
