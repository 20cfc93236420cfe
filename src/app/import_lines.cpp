#include "import_lines.hpp"

#include "ndjson.hpp"
#include "record/bytes_text.hpp"
#include "text/nearest.hpp"
#include "units.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace millrace::app {

namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 4> fields{"shard", "sequence", "sub_sequence", "finished"};
constexpr std::size_t shard_bytes_max = 256;

tl::unexpected<error> bad(std::string detail) {
    return fail(errc::invalid_argument, std::move(detail));
}

result<std::string_view> text_of(const json::value& value, std::string_view field) {
    if (value.is_string()) return std::string_view(value.get_string());
    return bad(fmt::format("\"{}\" is not in quotes; write it as text", field));
}

result<std::uint64_t> number_of(const json::value& value) {
    if (value.is_int64() && value.get_int64() >= 0) return static_cast<std::uint64_t>(value.get_int64());
    if (value.is_uint64()) return value.get_uint64();
    return bad("\"sub_sequence\" is not a whole number of at most 64 bits");
}

/// One field of a line; `sub` is kept until the sequence is known.
result<void> take_field(
    imported_shard& line, std::optional<std::uint64_t>& sub, std::string_view name, const json::value& value
) {
    if (value.is_null() && name != "shard") return {};  // what an export has nothing to say of
    if (name == "finished") {
        if (!value.is_bool()) return bad("\"finished\" is not true or false");
        line.finished = value.get_bool();
        return {};
    }
    if (name == "sub_sequence") {
        const auto number = number_of(value);
        if (!number) return tl::unexpected(number.error());
        sub = *number;
        return {};
    }
    const auto text = text_of(value, name);
    if (!text) return tl::unexpected(text.error());
    if (name == "sequence") {
        const auto sequence = sequence_number::parse(*text);
        if (!sequence) return bad(fmt::format("\"sequence\": {} is not a decimal number", in_quotes(*text)));
        line.reached = position{*sequence, 0};
        return {};
    }
    if (text->empty() || text->size() > shard_bytes_max || !is_utf8(*text))
        return bad("\"shard\" is not the name of a shard");
    line.shard = shard_id{std::string(*text)};
    return {};
}

result<imported_shard> parse_line(std::string_view text) {
    json::error_code broken;
    const auto parsed = json::parse(text, broken);
    if (broken || !parsed.is_object()) return bad("is no JSON object; write one a line");
    if (const auto name = doubled_field(text); !name.empty())
        return bad(fmt::format("the field {} is there twice", in_quotes(name)));
    imported_shard line;
    std::optional<std::uint64_t> sub;
    for (const auto& [key, value] : parsed.get_object()) {
        const std::string_view name = key;
        if (std::find(fields.begin(), fields.end(), name) == fields.end())
            return bad(fmt::format("unknown field {}{}", in_quotes(name), did_you_mean(name, fields)));
        if (auto taken = take_field(line, sub, name, value); !taken) return tl::unexpected(taken.error());
    }
    if (line.shard.value().empty()) return bad("has no \"shard\"");
    if (!line.reached && !line.finished)
        return bad("has neither a \"sequence\" nor \"finished\": true; leave the line out");
    if (sub && !line.reached) return bad("has a \"sub_sequence\" without a \"sequence\"");
    if (sub) line.reached->sub_sequence = *sub;
    return line;
}

}  // namespace

result<std::vector<imported_shard>> parse_import(std::string_view text) {
    std::vector<imported_shard> lines;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const auto end = std::min(text.find('\n'), text.size());
        const auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        auto parsed = parse_line(line);
        if (!parsed) return bad(fmt::format("line {}: {}", number, parsed.error().detail));
        parsed->line = number;
        lines.push_back(std::move(*parsed));
    }
    return lines;
}

}  // namespace millrace::app
