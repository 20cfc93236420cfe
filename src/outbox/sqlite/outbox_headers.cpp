#include "outbox_headers.hpp"

#include "record/bytes_text.hpp"

#include <array>
#include <optional>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace millrace {

namespace json = boost::json;

namespace {

tl::unexpected<error> broken(std::size_t index, std::string_view what) {
    return fail(errc::refused_record, fmt::format("header {} {}", index + 1, what));
}

std::string_view text_of(const json::value& value) {
    const auto& text = value.get_string();
    return {text.data(), text.size()};
}

result<std::optional<std::string>> value_of(const json::value& value, std::size_t index) {
    if (value.is_null()) return std::nullopt;
    if (value.is_string()) return std::string(text_of(value));
    const auto* const object = value.if_object();
    const auto* const coded =
        object != nullptr && object->size() == 1 ? object->if_contains("base64") : nullptr;
    if (coded == nullptr || !coded->is_string()) {
        return broken(index, "has a value that is no text, null or {\"base64\":\"...\"}");
    }
    auto bytes = from_base64(text_of(*coded));
    if (!bytes) return broken(index, "has a value that is not base64");
    return bytes;
}

}  // namespace

result<std::string> headers_to_json(const std::vector<header>& headers) {
    if (headers.empty()) return std::string();
    json::array all;
    for (std::size_t i = 0; i < headers.size(); ++i) {
        const auto& [name, value] = headers[i];
        if (!is_utf8(name)) {
            return fail(errc::invalid_argument, fmt::format("the name of header {} is not UTF-8", i + 1));
        }
        json::value stored;
        if (value && is_utf8(*value)) {
            stored = json::string(*value);
        } else if (value) {
            stored = json::object{{"base64", to_base64(*value)}};
        }
        json::array pair;
        pair.emplace_back(json::string(name));
        pair.push_back(std::move(stored));
        all.push_back(std::move(pair));
    }
    return json::serialize(all);
}

result<std::vector<header>> headers_from_json(std::string_view text) {
    std::vector<header> headers;
    if (text.empty()) return headers;
    std::array<unsigned char, 4'096> memory;
    json::monotonic_resource arena(memory.data(), memory.size());
    json::error_code failed;
    const auto parsed = json::parse(text, failed, &arena);
    if (failed) return fail(errc::refused_record, "the headers are not JSON in UTF-8");
    const auto* const all = parsed.if_array();
    if (all == nullptr) return fail(errc::refused_record, "the headers are no JSON array");
    headers.reserve(all->size());
    for (std::size_t i = 0; i < all->size(); ++i) {
        const auto* const pair = (*all)[i].if_array();
        if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string()) {
            return broken(i, "is no pair of a name and a value");
        }
        auto value = value_of((*pair)[1], i);
        if (!value) return tl::unexpected(std::move(value.error()));
        headers.push_back({std::string(text_of((*pair)[0])), std::move(*value)});
    }
    return headers;
}

}  // namespace millrace
