#include "credentials/profiles.hpp"

#include "credentials/ini.hpp"
#include "credentials/read_file.hpp"
#include "credentials/text.hpp"

#include <optional>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

constexpr std::string_view prefix = "profile";

/// What follows the word `profile`, without quotes; nothing for other sections.
std::optional<std::string_view> named_by_prefix(std::string_view section) {
    if (!section.starts_with(prefix)) return std::nullopt;
    const auto rest = section.substr(prefix.size());
    auto name = without_blanks(rest);
    if (name.empty() || name.size() == rest.size()) return std::nullopt;
    const char quote = name.front();
    if (name.size() > 2 && (quote == '"' || quote == '\'') && name.back() == quote)
        name = name.substr(1, name.size() - 2);
    return name;
}

void add(profiles& to, std::string_view name, const profile& values) {
    auto& there = to.by_name[std::string(name)];
    for (const auto& [key, value] : values)
        there.insert_or_assign(key, value);
}

void add_config(profiles& to, const std::vector<ini_section>& sections) {
    bool long_default = false;
    for (const auto& section : sections)
        long_default = long_default || named_by_prefix(section.name) == "default";
    for (const auto& section : sections) {
        if (const auto name = named_by_prefix(section.name))
            add(to, *name, section.values);
        else if (section.name == "default" && !long_default)
            add(to, "default", section.values);
    }
}

std::string path_of(const environment& variables, const std::string& name, const std::string& below_home) {
    const auto home = variables("HOME");
    auto path = variables(name);
    if (path.empty()) return home.empty() ? std::string() : home + below_home;
    if (path.starts_with("~/") && !home.empty()) path.replace(0, 1, home);
    return path;
}

result<shared_file> with_content(shared_file file) {
    if (file.path.empty()) return file;
    auto content = read_file(file.path, ini_bytes_max);
    if (!content && content.error().code != errc::not_found) return tl::unexpected(content.error());
    if (content) file.content = std::move(*content);
    return file;
}

}  // namespace

result<profiles> merge_profiles(const shared_file& credentials, const shared_file& config) {
    profiles merged;
    merged.looked_in = fmt::format("{} and {}", shown(credentials.path), shown(config.path));
    const auto of_config = parse_ini(config.content, config.path);
    if (!of_config) return tl::unexpected(of_config.error());
    add_config(merged, *of_config);
    const auto of_credentials = parse_ini(credentials.content, credentials.path);
    if (!of_credentials) return tl::unexpected(of_credentials.error());
    for (const auto& section : *of_credentials)
        if (!named_by_prefix(section.name)) add(merged, section.name, section.values);
    return merged;
}

shared_file credentials_file(const environment& variables) {
    return {path_of(variables, "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials"), {}};
}

shared_file config_file(const environment& variables) {
    return {path_of(variables, "AWS_CONFIG_FILE", "/.aws/config"), {}};
}

result<profiles> read_profiles(const environment& variables) {
    const auto credentials = with_content(credentials_file(variables));
    if (!credentials) return tl::unexpected(credentials.error());
    const auto config = with_content(config_file(variables));
    if (!config) return tl::unexpected(config.error());
    return merge_profiles(*credentials, *config);
}

}  // namespace millrace::aws
