#include "credentials/sts_reply.hpp"

#include "credentials/origins.hpp"
#include "credentials/text.hpp"
#include "text/moment.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

constexpr std::size_t depth_max = 32;

/// The text of each element that holds only text, by its name and its parent's: `Credentials/AccessKeyId`.
using leaves = std::map<std::string, std::string, std::less<>>;

/// The character of `&lt;`, `&#65;` or `&#x41;`, of which the `&` and the `;` are taken off. ASCII alone.
std::optional<char> entity(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, char>, 5> named{
        {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};
    for (const auto& [known, character] : named)
        if (name == known) return character;
    if (!name.starts_with('#')) return std::nullopt;
    const int base = name.starts_with("#x") ? 16 : 10;
    name.remove_prefix(base == 16 ? 2 : 1);
    std::uint32_t number = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), number, base);
    if (read.ec != std::errc{} || read.ptr != name.data() + name.size() || number == 0 || number > 127)
        return std::nullopt;
    return static_cast<char>(number);
}

std::optional<std::string> plain(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto mark = std::min(text.find('&'), text.size());
        out += text.substr(0, mark);
        text.remove_prefix(mark);
        if (text.empty()) break;
        const auto end = text.find(';');
        if (end == std::string_view::npos) return std::nullopt;
        const auto character = entity(text.substr(1, end - 1));
        if (!character) return std::nullopt;
        out += *character;
        text.remove_prefix(end + 1);
    }
    return out;
}

class xml_reader {
public:
    explicit xml_reader(std::string_view text) : rest_(text) {}

    /// Nothing when it is not well formed, as far as that is looked at.
    std::optional<leaves> all() {
        while (!rest_.empty()) {
            const auto open = std::min(rest_.find('<'), rest_.size());
            text_ = rest_.substr(0, open);
            rest_.remove_prefix(open);
            if (rest_.empty()) break;
            if (!take_tag()) return std::nullopt;
        }
        if (!path_.empty() || found_.empty()) return std::nullopt;
        return std::move(found_);
    }

private:
    bool take_tag() {
        const auto end = rest_.find('>');
        if (end == std::string_view::npos) return false;
        auto tag = rest_.substr(1, end - 1);
        rest_.remove_prefix(end + 1);
        if (tag.starts_with('?')) return true;  // the declaration at the top
        if (tag.starts_with('!')) return false;
        if (tag.starts_with('/')) return close(without_blanks(tag.substr(1)));
        const bool whole = tag.ends_with('/');
        if (whole) tag.remove_suffix(1);
        const auto name = tag.substr(0, tag.find_first_of(blanks));
        if (name.empty() || path_.size() >= depth_max) return false;
        path_.push_back(name);
        is_leaf_ = true;
        if (whole) text_ = {};
        return !whole || close(name);
    }

    bool close(std::string_view name) {
        if (path_.empty() || path_.back() != name) return false;
        path_.pop_back();
        if (!std::exchange(is_leaf_, false)) return true;
        auto value = plain(without_blanks(text_));
        if (!value) return false;
        const auto parent = path_.empty() ? std::string_view() : path_.back();
        found_.insert_or_assign(fmt::format("{}/{}", parent, name), std::move(*value));
        return true;
    }

    std::string_view rest_;
    std::string_view text_;  // before the tag that is taken
    std::vector<std::string_view> path_;
    bool is_leaf_{false};
    leaves found_;
};

std::optional<leaves> leaves_of(std::string_view xml) {
    if (xml.size() > sts_bytes_max) return std::nullopt;
    return xml_reader(xml).all();
}

std::string leaf(const leaves& of, std::string_view name) {
    const auto found = of.find(name);
    return found == of.end() ? std::string() : found->second;
}

}  // namespace

result<aws_keys> read_sts_keys(std::string_view xml, std::string_view source) {
    const auto wrong = [&](std::string_view what) {
        return fail(
            errc::unavailable,
            fmt::format("{} {}; is the address that of STS?", source, what),
            retry_advice::after_delay
        );
    };
    const auto read = leaves_of(xml);
    if (!read) return wrong("gave something that is no reply of STS");
    aws_keys keys;
    keys.access_key = leaf(*read, "Credentials/AccessKeyId");
    keys.secret_key = leaf(*read, "Credentials/SecretAccessKey");
    keys.session_token = leaf(*read, "Credentials/SessionToken");
    if (!check_keys(keys, source) || keys.session_token.empty())
        return wrong("gave a reply without usable keys");
    keys.expires = read_moment(leaf(*read, "Credentials/Expiration"));
    if (!keys.expires) return wrong("gave keys without an Expiration");
    return keys;
}

sts_failure read_sts_failure(std::string_view xml) {
    const auto read = leaves_of(xml);
    if (!read) return {};
    return {shown(leaf(*read, "Error/Code"), 64), shown(leaf(*read, "Error/Message"))};
}

}  // namespace millrace::aws
