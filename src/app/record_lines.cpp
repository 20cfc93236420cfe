#include "record_lines.hpp"

#include "json_text.hpp"
#include "record/bytes_text.hpp"
#include "units.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <optional>

#include <fmt/format.h>

namespace millrace::app {

namespace {

void append_number(std::string& out, std::uint64_t value) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void append_sequence(std::string& out, const sequence_number& number) {
    if (number == sequence_number{number.low64()})
        append_number(out, number.low64());
    else
        out += number.to_string();
}

/// `,"data":"text"`, `,"data_base64":"..."` or `,"data":null`.
void append_field(std::string& out, std::string_view name, const std::optional<std::string_view>& bytes) {
    out += ",\"";
    out += name;
    if (!bytes) {
        out += "\":null";
    } else if (is_utf8(*bytes)) {
        out += "\":";
        append_json_string(out, *bytes);
    } else {
        out += "_base64\":\"";
        out += to_base64(*bytes);
        out += '"';
    }
}

void append_element(std::string& out, const std::optional<std::string_view>& bytes) {
    if (!bytes) {
        out += "null";
    } else if (is_utf8(*bytes)) {
        append_json_string(out, *bytes);
    } else {
        out += "{\"base64\":\"";
        out += to_base64(*bytes);
        out += "\"}";
    }
}

void append_headers(std::string& out, std::span<const record_header> headers) {
    out += ",\"headers\":[";
    for (std::size_t i = 0; i < headers.size(); ++i) {
        out += i == 0 ? "[" : ",[";
        append_element(out, headers[i].name);
        out += ',';
        append_element(out, headers[i].value);
        out += ']';
    }
    out += ']';
}

}  // namespace

record_lines::record_lines(
    std::string_view stream, const shard_id& shard, std::string_view worker, epoch mine
)
    : head_(fmt::format(
          R"({{"stream":{},"shard":{},"sequence":")", json_string(stream), json_string(shard.value())
      )),
      tail_(fmt::format(R"(Z","worker":{},"epoch":{}}})", json_string(worker), mine.value()) + '\n') {}

void record_lines::append_time(std::string& out, wall_time moment) {
    const auto second = std::chrono::floor<std::chrono::seconds>(moment);
    if (second != second_ || second_text_.empty()) {
        second_ = second;
        second_text_ = format_time(second).substr(0, 19);
    }
    const auto ms = static_cast<unsigned>((moment - second).count());
    out += second_text_;
    out += '.';
    out += static_cast<char>('0' + ms / 100);
    out += static_cast<char>('0' + ms / 10 % 10);
    out += static_cast<char>('0' + ms % 10);
}

void record_lines::append(std::string& out, const record& item) {
    out += head_;
    append_sequence(out, item.position.sequence);
    out += "\",\"sub_sequence\":";
    append_number(out, item.position.sub_sequence);
    append_field(out, "key", item.key);
    append_field(out, "data", item.data);
    append_headers(out, item.headers);
    out += ",\"arrival\":\"";
    append_time(out, item.arrival);
    out += tail_;
}

}  // namespace millrace::app
