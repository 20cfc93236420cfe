#include "config.hpp"
#include "json_text.hpp"
#include "option.hpp"
#include "record/bytes_text.hpp"
#include "settings.hpp"
#include "targets.hpp"

#include <string>

namespace millrace::fuzz {

namespace {

std::optional<std::string> variable(const std::string& name) {
    return name == "SECRET" ? std::optional<std::string>("3s") : std::nullopt;
}

app::config_values read(std::string_view text, app::faults& found) {
    return app::parse_config("m.yaml", text, variable, found);
}

/// The values in double quotes; nothing when one is no text that JSON and YAML write alike.
std::optional<std::string> file_of(const app::config_values& values) {
    std::string out;
    for (const auto& [section, given] : values) {
        out += section + ":\n";
        for (const auto& value : given) {
            if (!is_utf8(value.shown) || value.shown.find('\x7f') != std::string::npos) return std::nullopt;
            out += "  " + app::config_key(value.option) + ": " + app::json_string(value.shown) + "\n";
        }
    }
    return out;
}

void require_same(const app::config_values& one, const app::config_values& other) {
    require(one.size() == other.size(), "sections are kept");
    for (const auto& [section, given] : one) {
        const auto again = other.find(section);
        require(again != other.end() && again->second.size() == given.size(), "options are kept");
        for (std::size_t i = 0; i < given.size(); ++i) {
            const auto& copy = again->second[i];
            require(copy.option == given[i].option && copy.text == given[i].text, "values are kept");
        }
    }
}

}  // namespace

void config(std::string_view text) {
    app::faults found;
    const auto values = read(text, found);
    require(found.lines().size() <= 51, "the number of faults is bounded");
    for (const auto& [section, given] : values) {
        const auto* command = app::find_command(section);
        require(command != nullptr && command->configurable, "only sections that exist are taken");
        for (const auto& value : given) {
            const auto* option = app::find_option(*command, value.option);
            require(option != nullptr && option->in_file, "only options that exist are taken");
        }
        app::faults wrong;
        (void)app::settings::resolve(*command, given, {}, true, wrong);
    }
    const auto file = file_of(values);
    if (!file || file->size() > app::config_bytes_max) return;
    app::faults none;
    const auto again = read(*file, none);
    require(none.empty(), "what was taken is taken again");
    require_same(values, again);
}

}  // namespace millrace::fuzz
