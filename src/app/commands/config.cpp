#include "config.hpp"

#include "cli.hpp"
#include "commands.hpp"
#include "json_text.hpp"
#include "output.hpp"
#include "reference.hpp"
#include "schemas_section.hpp"
#include "settings.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace millrace::app {

namespace {

option_spec file_option() {
    return {
        .name = "file",
        .placeholder = "FILE",
        .meaning = "The configuration file",
        .required = true,
        .positional = true,
        .in_file = false};
}

/// The settings of every section that the file has.
std::vector<settings> resolve_file(
    const config_values& values, std::string_view command, std::span<const given_value> flags, faults& found
) {
    std::vector<settings> out;
    const command_spec* const called = find_command(command);
    const auto of_schemas = values.find(schemas_section().path);
    std::optional<settings> schemas;
    if (of_schemas != values.end() && (command.empty() || (called != nullptr && called->takes_schemas)))
        schemas = resolve_schemas(of_schemas->second, found);
    for (const command_spec* const one : sections()) {
        const command_spec& candidate = *one;
        const auto section = values.find(candidate.path);
        const bool there = section != values.end();
        if (one == &schemas_section()) {
            if (schemas) out.push_back(*schemas);
            continue;
        }
        if (!(command.empty() ? there : one == called)) continue;
        const std::vector<given_value> none;
        out.push_back(settings::resolve(candidate, there ? section->second : none, flags, false, found));
        if (candidate.check != nullptr) candidate.check(out.back(), found);
    }
    return out;
}

exit_status check_file(const settings& values) {
    const std::string file = values.text("file");
    faults found;
    const config_values read = read_config(file, process_environment(), found);
    for (const settings& section : resolve_file(read, {}, {}, found)) {
        if (&section.command() == &schemas_section()) check_schema_files(section, found);
    }
    if (!found.empty()) {
        complain(found);
        return found.status();
    }
    return print(fmt::format("{}: ok\n", file));
}

struct explained {
    std::string command;
    std::string key;
    std::optional<std::string> value;  ///< Not set without one.
    std::string origin;
};

std::vector<explained> explain(const std::vector<settings>& sections) {
    std::vector<explained> rows;
    for (const settings& section : sections) {
        for (const setting& s : section.all()) {
            if (!s.option->in_file) continue;
            for (const given_value& part : s.parts) {
                rows.push_back(
                    {std::string{section.command().path},
                     fmt::format("rules[{}].{}", part.rule, part.key),
                     part.shown,
                     part.where.substr(0, part.where.rfind(':'))}
                );
            }
            if (!s.parts.empty()) continue;
            rows.push_back(
                {std::string{section.command().path},
                 config_key(s.option->name),
                 s.values.empty() ? std::nullopt : std::optional(s.shown),
                 s.values.empty() ? "not set" : s.origin}
            );
        }
    }
    return rows;
}

exit_status print_explained(const std::vector<explained>& rows, bool as_json) {
    if (!as_json) {
        table out({"option", "value", "origin"});
        for (const explained& r : rows)
            out.add({fmt::format("{}.{}", r.command, r.key), r.value.value_or("-"), r.origin});
        return print(out.text());
    }
    std::string out = "[";
    for (const explained& r : rows) {
        if (out.size() > 1) out += ",\n ";
        out += R"({"section":)" + json_string(r.command) + R"(,"key":)" + json_string(r.key) +
               R"(,"value":)" + (r.value ? json_string(*r.value) : "null") + R"(,"origin":)" +
               json_string(r.origin) + "}";
    }
    return print(out + "]\n");
}

/// The values of a file; with a command line behind it, what that command would run with.
exit_status explain_file(const settings& values) {
    faults found;
    const config_values read = read_config(values.text("file"), process_environment(), found);
    std::vector<std::string> words = values.list("words");
    // Flags without a command are of the only one that the file has.
    const bool only_flags = !words.empty() && words.front().starts_with('-');
    const auto of_command = std::find_if(read.begin(), read.end(), [](const auto& section) {
        return section.first != schemas_section().path;
    });
    const bool one_command =
        of_command != read.end() && read.size() - read.count(schemas_section().path) == 1;
    if (only_flags && one_command) words.insert(words.begin(), of_command->first);
    command_line line;
    if (only_flags && !one_command) {
        found.add(fmt::format(
            "{0} needs its command: write millrace config explain FILE relay {0} ... or consume {0} ...",
            words.front()
        ));
    } else if (!words.empty()) {
        line = parse_command_line(words, found);
        if (line.command != nullptr && !line.command->configurable) {
            found.add(fmt::format("{} takes no configuration", line.command->path));
        }
    }
    const std::string_view command = line.command == nullptr ? std::string_view{} : line.command->path;
    const std::vector<settings> sections = resolve_file(read, command, line.flags, found);
    if (!found.empty()) {
        complain(found);
        return found.status();
    }
    return print_explained(explain(sections), values.flag("json"));
}

exit_status print_reference(const settings&) {
    return print(config_reference());
}

}  // namespace

void add_config_commands(std::vector<command_spec>& list) {
    list.push_back(
        {.path = "config check",
         .about = "Name every fault of a configuration file",
         .example = "millrace config check millrace.yaml",
         .options = {file_option()},
         .run = check_file}
    );
    list.push_back(
        {.path = "config explain",
         .about = "Show each effective value of a configuration file and where it comes from",
         .example = "millrace config explain millrace.yaml relay --lease 3s",
         .options =
             {file_option(),
              {.name = "words",
               .placeholder = "COMMAND...",
               .meaning = "A command line whose flags are laid over the file",
               .many = true,
               .rest = true,
               .in_file = false},
              json_option()},
         .run = explain_file}
    );
    list.push_back(
        {.path = "config reference",
         .about = "Print every configuration key as Markdown",
         .example = "millrace config reference",
         .options = {},
         .run = print_reference}
    );
}

}  // namespace millrace::app
