#include "credentials/ini.hpp"

#include "credentials/text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

bool is_blank(char c) {
    return blanks.find(c) != std::string_view::npos;
}

bool begins_comment(std::string_view text) {
    return text.starts_with('#') || text.starts_with(';');
}

/// Up to a comment that stands behind a blank.
std::string_view without_comment(std::string_view value) {
    for (std::size_t i = 0; i < value.size(); ++i) {
        if (begins_comment(value.substr(i)) && (i == 0 || is_blank(value[i - 1]))) return value.substr(0, i);
    }
    return value;
}

class ini_reader {
public:
    explicit ini_reader(std::string_view file) : file_(file) {}

    result<void> take(std::string_view line) {
        ++number_;
        const bool indented = !line.empty() && is_blank(line.front());
        const auto content = without_blanks(line);
        if (content.empty() || begins_comment(content)) return {};
        if (indented && value_ != nullptr) {
            *value_ += '\n';
            *value_ += without_blanks(without_comment(content));
            return {};
        }
        return content.front() == '[' ? take_section(content) : take_value(content);
    }

    std::vector<ini_section> sections;

private:
    result<void> take_section(std::string_view content) {
        const auto end = content.find(']');
        if (end == std::string_view::npos) return wrong("a section without \"]\"");
        const auto rest = without_blanks(content.substr(end + 1));
        if (!rest.empty() && !begins_comment(rest)) return wrong("text behind \"]\"");
        const auto name = without_blanks(content.substr(1, end - 1));
        if (name.empty()) return wrong("a section without a name");
        sections.push_back({std::string(name), {}});
        value_ = nullptr;
        return {};
    }

    result<void> take_value(std::string_view content) {
        const auto equals = content.find('=');
        if (equals == std::string_view::npos) return wrong("neither a section nor \"name = value\"");
        const auto name = without_blanks(content.substr(0, equals));
        if (name.empty()) return wrong("a value without a name");
        if (sections.empty()) return wrong("a value above the first section");
        value_ = &sections.back().values[in_lower_case(name)];
        *value_ = without_blanks(without_comment(content.substr(equals + 1)));
        return {};
    }

    [[nodiscard]] tl::unexpected<error> wrong(std::string_view what) const {
        return fail(
            errc::invalid_config, fmt::format("{}, line {}: {}; mend the line", shown(file_), number_, what)
        );
    }

    std::string_view file_;
    std::size_t number_{0};
    std::string* value_{nullptr};  // what indented lines continue
};

}  // namespace

result<std::vector<ini_section>> parse_ini(std::string_view text, std::string_view file) {
    if (text.size() > ini_bytes_max) {
        return fail(
            errc::invalid_config,
            fmt::format(
                "{} is larger than {} bytes; is it the file that is meant?", shown(file), ini_bytes_max
            )
        );
    }
    constexpr std::string_view mark = "\xef\xbb\xbf";  // that some editors put before UTF-8
    if (text.starts_with(mark)) text.remove_prefix(mark.size());
    ini_reader reader(file);
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        if (auto taken = reader.take(text.substr(0, end)); !taken) return tl::unexpected(taken.error());
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::move(reader.sections);
}

}  // namespace millrace::aws
