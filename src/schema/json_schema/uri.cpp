#include "json_schema/uri.hpp"

#include <charconv>
#include <cstdint>
#include <vector>

namespace millrace::schema {

namespace {

bool has_scheme(std::string_view uri) {
    const auto colon = uri.find(':');
    return colon != std::string_view::npos && colon > 0 && colon < uri.find_first_of("/?#");
}

/// Scheme and authority: `http://host`, `urn:`; empty when there is none.
std::string_view root_of(std::string_view uri) {
    if (!has_scheme(uri)) return {};
    const auto colon = uri.find(':');
    if (uri.substr(colon + 1, 2) != "//") return uri.substr(0, colon + 1);
    return uri.substr(0, uri.find('/', colon + 3));
}

/// Takes `.` and `..` out of a path.
std::string without_dots(std::string_view path) {
    std::vector<std::string_view> steps;
    const bool absolute = path.starts_with('/');
    if (absolute) path.remove_prefix(1);
    for (bool more = true; more;) {
        const auto slash = path.find('/');
        const auto step = path.substr(0, slash);
        more = slash != std::string_view::npos;
        if (more) path.remove_prefix(slash + 1);
        if (step == ".." && !steps.empty()) steps.pop_back();
        const bool dots = step == "." || step == "..";
        if (!dots) steps.push_back(step);
        if (dots && !more) steps.emplace_back();
    }
    std::string out;
    for (const auto step : steps) {
        if (!out.empty() || absolute) out += '/';
        out += step;
    }
    return out;
}

}  // namespace

std::string_view without_fragment(std::string_view uri) noexcept {
    return uri.substr(0, uri.find('#'));
}

std::string_view fragment_of(std::string_view uri) noexcept {
    const auto hash = uri.find('#');
    return hash == std::string_view::npos ? std::string_view{} : uri.substr(hash + 1);
}

std::string resolve_uri(std::string_view base, std::string_view reference) {
    base = without_fragment(base);
    if (has_scheme(reference)) return std::string(reference);
    if (reference.empty() || reference.starts_with('#')) return std::string(base) + std::string(reference);
    const auto root = root_of(base);
    const auto target = without_fragment(reference);
    std::string path(target);
    if (!target.starts_with('/')) {
        const auto folder = base.substr(root.size(), base.rfind('/') + 1 - root.size());
        const bool no_folder = base.rfind('/') == std::string_view::npos || base.rfind('/') < root.size();
        path = no_folder ? (root.empty() ? path : "/" + path) : std::string(folder) + path;
    }
    return std::string(root) + without_dots(path) + std::string(reference.substr(target.size()));
}

std::string percent_decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        std::uint8_t byte = 0;
        const auto* const digits = text.data() + i + 1;
        const bool escape = text[i] == '%' && i + 2 < text.size() &&
                            std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
        out += escape ? static_cast<char>(byte) : text[i];
        if (escape) i += 2;
    }
    return out;
}

std::string pointer_step(std::string_view step) {
    std::string out;
    for (std::size_t i = 0; i < step.size(); ++i) {
        const bool escape =
            step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1');
        out += !escape ? step[i] : step[i + 1] == '0' ? '~' : '/';
        if (escape) ++i;
    }
    return out;
}

}  // namespace millrace::schema
