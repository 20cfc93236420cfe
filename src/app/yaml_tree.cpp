#include "yaml_tree.hpp"

#include <algorithm>

namespace millrace::app {

std::string_view in_words(yaml_node::kind what) {
    switch (what) {
        case yaml_node::kind::null:
            return "nothing";
        case yaml_node::kind::scalar:
            return "one value";
        case yaml_node::kind::list:
            return "a list";
        case yaml_node::kind::map:
            return "a mapping";
        case yaml_node::kind::alias:
            return "an alias";
    }
    return "";
}

std::string_view beyond_its_line(const std::vector<std::string_view>& lines, const yaml_node& scalar) {
    const auto at = static_cast<std::size_t>(std::max(scalar.mark.line, 0));
    const auto column = static_cast<std::size_t>(std::max(scalar.mark.column, 0));
    if (at >= lines.size() || column >= lines[at].size()) return {};
    const std::string_view rest = lines[at].substr(column);
    switch (rest.front()) {
        case '"':
        case '\'':
            for (std::size_t i = 1; i < rest.size(); ++i) {
                if (rest.front() == '"' && rest[i] == '\\') {
                    ++i;
                } else if (rest[i] == rest.front()) {
                    if (rest.front() == '"' || i + 1 == rest.size() || rest[i + 1] != rest.front()) return {};
                    ++i;  // '' stands for a quote
                }
            }
            return "the quote that begins here is not closed on its line";
        case '|':
        case '>':
            return "a value must stand on one line; write it behind the key";
        case '!':
        case '&':
            return "tags and anchors are not supported; write the value alone";
        default:
            if (rest.starts_with(scalar.text)) return {};
            return "the value that begins here goes on on the next line; write it on one line";
    }
}

}  // namespace millrace::app
