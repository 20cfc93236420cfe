#include "client/error_body.hpp"

#include "client/cbor_texts.hpp"
#include "client/classify.hpp"

#include <algorithm>

#include <boost/json.hpp>

namespace millrace::aws {

namespace {

/// Services spell the members differently.
void take(service_error& into, std::string_view key, std::string_view value) {
    if (key == "__type" || (into.type.empty() && (key == "code" || key == "Code"))) into.type = value;
    if (key == "message" || key == "Message" || key == "errorMessage") into.message = value;
}

service_error of_json(std::string_view body) {
    service_error found;
    boost::json::error_code failed;
    const auto value = boost::json::parse({body.data(), body.size()}, failed);
    const auto* const object = failed ? nullptr : value.if_object();
    if (object == nullptr) return found;
    for (const auto& [key, member] : *object) {
        if (const auto* const text = member.if_string()) {
            take(found, {key.data(), key.size()}, {text->data(), text->size()});
        }
    }
    return found;
}

service_error of_cbor(std::string_view body) {
    service_error found;
    read_cbor_texts(body, [&](std::string_view key, std::string_view value) { take(found, key, value); });
    return found;
}

/// What stands in the first element of that name; empty when there is none.
std::string_view element(std::string_view xml, std::string_view open, std::string_view close) {
    const auto begin = xml.find(open);
    if (begin == std::string_view::npos) return {};
    xml.remove_prefix(begin + open.size());
    const auto end = xml.find(close);
    return end == std::string_view::npos ? std::string_view() : xml.substr(0, end);
}

service_error of_xml(std::string_view body) {
    return {
        std::string(element(body, "<Code>", "</Code>")),
        std::string(element(body, "<Message>", "</Message>"))};
}

bool is_name(std::string_view type) {
    constexpr std::size_t bytes_max = 100;
    return type.size() <= bytes_max && std::all_of(type.begin(), type.end(), [](char c) {
               return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '_' || c == '-';
           });
}

}  // namespace

service_error read_error(std::string_view content_type, std::string_view type_header, std::string_view body) {
    service_error found;
    if (content_type.find("cbor") != std::string_view::npos) {
        found = of_cbor(body);
    } else if (body.find_first_not_of(" \t\r\n") != std::string_view::npos && body[body.find_first_not_of(" \t\r\n")] == '{') {
        found = of_json(body);
    } else {
        found = of_xml(body);
    }
    if (!type_header.empty()) found.type = type_header;
    found.type = std::string(bare_type(found.type));
    if (!is_name(found.type)) found.type.clear();
    return found;
}

}  // namespace millrace::aws
