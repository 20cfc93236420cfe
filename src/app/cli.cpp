#include "cli.hpp"

#include "config.hpp"
#include "output.hpp"
#include "schemas_section.hpp"
#include "text/nearest.hpp"
#include "units.hpp"

#include <millrace/url.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace millrace::app {

namespace {

/// The next words of all commands below a path, each once, in order: `init`, `put`, ... below `outbox`.
std::vector<std::string_view> words_below(std::string_view path) {
    std::vector<std::string_view> out;
    for (const command_spec& command : commands()) {
        std::string_view rest = command.path;
        if (!path.empty()) {
            if (rest.size() <= path.size() || rest.substr(0, path.size()) != path || rest[path.size()] != ' ')
                continue;
            rest.remove_prefix(path.size() + 1);
        }
        const std::string_view word = rest.substr(0, rest.find(' '));
        if (std::find(out.begin(), out.end(), word) == out.end()) out.push_back(word);
    }
    return out;
}

std::string joined(std::string_view path, std::string_view word) {
    return path.empty() ? std::string{word} : fmt::format("{} {}", path, word);
}

/// One CLI11 command tree of the whole table.
class tree {
public:
    tree() {
        prepare(root_);
        root_.add_flag("--version");
        for (const command_spec& command : commands())
            add(command);
    }

    /// Throws what CLI11 throws.
    void parse(std::vector<std::string> words) {
        std::reverse(words.begin(), words.end());
        root_.parse(std::move(words));
    }

    [[nodiscard]] bool version_asked() const { return root_.count("--version") > 0; }

    /// The path that the words led to, and the words at each level that nothing took.
    [[nodiscard]] std::string path(std::vector<std::string>& rest) const {
        std::string path;
        for (const CLI::App* at = &root_; at != nullptr;) {
            const auto left = at->remaining(false);
            rest.insert(rest.end(), left.begin(), left.end());
            const auto next = at->get_subcommands();
            if (next.empty()) return path;
            at = next.front();
            path = joined(path, at->get_name());
        }
        return path;
    }

    [[nodiscard]] std::vector<given_value> values_of(const command_spec& command) const {
        std::vector<given_value> out;
        const CLI::App* app = apps_.at(std::string{command.path});
        for (const option_spec& option : command.options) {
            if (option.rest) continue;
            for (const std::string& text : app->get_option(fmt::format("--{}", option.name))->results()) {
                out.push_back({std::string{option.name}, text, text, {}});
            }
        }
        return out;
    }

private:
    static void prepare(CLI::App& app) {
        app.set_help_flag("-h,--help", "");
        app.allow_extras();
        app.require_subcommand(0, 1);
    }

    CLI::App* app_for(std::string_view path) {
        if (path.empty()) return &root_;
        auto& app = apps_[std::string{path}];
        if (app != nullptr) return app;
        const std::size_t space = path.rfind(' ');
        const bool top = space == std::string_view::npos;
        CLI::App* parent = app_for(top ? std::string_view{} : path.substr(0, space));
        app = parent->add_subcommand(std::string{top ? path : path.substr(space + 1)}, "");
        prepare(*app);
        return app;
    }

    void add(const command_spec& command) {
        CLI::App* app = app_for(command.path);
        for (const option_spec& option : command.options) {
            if (option.rest) continue;
            const std::string name =
                fmt::format("{}--{}", option.positional ? fmt::format("{},", option.name) : "", option.name);
            if (option.kind == option_kind::flag) {
                app->add_flag(name)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
                continue;
            }
            app->add_option(name, [](const CLI::results_t&) { return true; })
                ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                ->expected(1, option.positional && option.many ? 1000 : 1)
                ->allow_extra_args(option.positional && option.many);
        }
    }

    CLI::App root_;
    std::map<std::string, CLI::App*> apps_;
};

/// `--name=` becomes `--name` and an empty word: CLI11 would take the next word for the value.
std::vector<std::string> with_empty_values(std::vector<std::string> words) {
    std::vector<std::string> out;
    for (std::string& word : words) {
        const bool empty_value =
            word.size() > 3 && word.substr(0, 2) == "--" && word.find('=') == word.size() - 1;
        if (empty_value) word.pop_back();
        out.push_back(std::move(word));
        if (empty_value) out.emplace_back();
    }
    return out;
}

bool is_option(std::string_view word) {
    return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

void complain_of_command(std::string_view path, std::string_view word, faults& found) {
    const auto known = words_below(path);
    std::string near{nearest(word, known)};
    if (!near.empty())
        near = fmt::format("; did you mean \"{}\"?", joined(path, near));
    else
        near = fmt::format("; there are {}", fmt::join(known, ", "));
    found.add(fmt::format("unknown command \"{}\"{}", joined(path, word), near));
}

void complain_of_options(const command_spec* command, std::span<const std::string> rest, faults& found) {
    std::vector<std::string> names{"--help"};
    if (command == nullptr)
        names.emplace_back("--version");
    else
        for (const option_spec& o : command->options)
            names.push_back(fmt::format("--{}", o.name));
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    bool unknown = false;
    for (const std::string& word : rest) {
        if (!is_option(word)) continue;
        const std::string name = word.substr(0, word.find('='));
        found.add(fmt::format(
            "unknown option \"{}\"{}{}",
            name,
            command == nullptr ? "" : fmt::format(" of {}", command->path),
            did_you_mean(name, candidates)
        ));
        unknown = true;
    }
    // A word behind an unknown option is probably its value.
    if (unknown) return;
    for (const std::string& word : rest) {
        found.add(
            fmt::format("unexpected argument {}; options begin with --", in_quotes(without_secrets(word)))
        );
    }
}

/// Looks at what CLI11 understood.
void settle(const tree& parsed, command_line& out, faults& found) {
    std::vector<std::string> rest;
    const std::string path = parsed.path(rest);
    if (path.empty() && parsed.version_asked()) {
        out.command = find_command("version");
        return;
    }
    const command_spec* command = find_command(path);
    if (command == nullptr) {
        const auto word = std::find_if(rest.begin(), rest.end(), [](const auto& w) { return !is_option(w); });
        if (word != rest.end()) return complain_of_command(path, *word, found);
        complain_of_options(nullptr, rest, found);
        if (rest.empty()) {
            found.add(fmt::format(
                "{} needs a command: {}", path.empty() ? "millrace" : path, fmt::join(words_below(path), ", ")
            ));
        }
        return;
    }
    out.command = command;
    out.flags = parsed.values_of(*command);
    for (const option_spec& option : command->options) {
        if (!option.rest) continue;
        for (const std::string& word : rest)
            out.flags.push_back({std::string{option.name}, word, word, {}});
        return;
    }
    complain_of_options(command, rest, found);
}

std::string option_line(const option_spec& option) {
    std::string left = option.rest ? "  " : fmt::format("  --{} ", option.name);
    left += option.placeholder;
    std::string right{option.meaning};
    if (!option.fallback.empty() && option.kind != option_kind::flag) {
        right += fmt::format(" (default {})", option.fallback);
    }
    if (option.required) right += " (required)";
    if (left.size() > 33) return fmt::format("{}\n{:34}{}\n", left, "", right);
    return fmt::format("{:34}{}\n", left, right);
}

std::string command_help(const command_spec& command) {
    std::string usage = fmt::format("Usage: millrace {}", command.path);
    for (const option_spec& option : command.options) {
        if (!option.required) continue;
        if (option.positional)
            usage += fmt::format(" {}{}", option.placeholder, option.many ? "..." : "");
        else
            usage += fmt::format(" --{} {}", option.name, option.placeholder);
    }
    std::string out = fmt::format("{}\n\n{} [options]\n\nOptions:\n", command.about, usage);
    for (const option_spec& option : command.options)
        out += option_line(option);
    out += fmt::format("{:34}{}\n", "  -h, --help", "Show this text");
    return out + fmt::format("\nExample:\n  {}\n", command.example);
}

void print_faults(const command_line& line, const faults& found) {
    complain(found);
    if (found.status() != exit_status::usage) return;
    const std::string about = line.command == nullptr ? "" : fmt::format("{} ", line.command->path);
    say(fmt::format("millrace: see millrace {}--help\n", about));
}

}  // namespace

std::string help_of(std::string_view path) {
    if (const command_spec* command = find_command(path)) return command_help(*command);
    const bool root = path.empty();
    std::string out =
        root ? "Moves events out of a database into a stream, and shares a stream among workers.\n\n"
               "Usage: millrace COMMAND [options]\n\nCommands:\n"
             : fmt::format("Usage: millrace {} COMMAND [options]\n\nCommands:\n", path);
    for (const command_spec& command : commands()) {
        if (!root && (command.path.substr(0, path.size()) != path)) continue;
        out += fmt::format("  {:22}{}\n", command.path, command.about);
    }
    out += "\nmillrace COMMAND --help shows the options of a command.\n\nExample:\n";
    const std::vector<std::string_view> words = words_below(path);
    const auto first = std::find_if(commands().begin(), commands().end(), [&](const command_spec& c) {
        return root || c.path.substr(0, path.size()) == path;
    });
    return out + fmt::format("  {}\n", first == commands().end() ? "millrace version" : first->example);
}

command_line parse_command_line(std::vector<std::string> words, faults& found) {
    command_line out;
    if (!words.empty() && words.front() == "help") {
        const auto path = fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " "));
        if (path.empty() || find_command(path) != nullptr || !words_below(path).empty()) {
            out.help = help_of(path);
            return out;
        }
        const auto above = path.rfind(' ');
        const bool top = above == std::string::npos || words_below(path.substr(0, above)).empty();
        complain_of_command(top ? "" : path.substr(0, above), top ? path : path.substr(above + 1), found);
        return out;
    }
    words = with_empty_values(std::move(words));
    // A last option without its value is taken away and the rest is read, so that all faults are found.
    for (int attempt = 0; attempt < 2; ++attempt) {
        tree parsed;
        try {
            parsed.parse(words);
            settle(parsed, out, found);
        } catch (const CLI::CallForHelp&) {
            std::vector<std::string> rest;
            out.help = help_of(parsed.path(rest));
        } catch (const CLI::ArgumentMismatch& e) {
            if (attempt == 0 && !words.empty() && is_option(words.back())) {
                found.add(fmt::format("{} needs a value", words.back()));
                words.pop_back();
                continue;
            }
            found.add(e.what());
        } catch (const CLI::ParseError& e) {
            found.add(e.what());
        }
        break;
    }
    return out;
}

/// Sections of other commands are not used here, and still a fault of the file.
void check_other_sections(const command_spec& used, const config_values& file, faults& found) {
    for (const command_spec* const one : sections()) {
        const command_spec& other = *one;
        const auto section = file.find(other.path);
        if (section == file.end() || other.path == used.path) continue;
        if (used.takes_schemas && one == &schemas_section()) continue;
        std::vector<given_value> known;
        std::ranges::copy_if(section->second, std::back_inserter(known), [](const given_value& v) {
            return !v.open;
        });
        const settings values = settings::resolve(other, known, {}, false, found);
        // Of values that depend on each other, one may be in the environment.
        const bool complete = known.size() == section->second.size();
        if (complete && other.check != nullptr) other.check(values, found);
    }
}

/// Of the file; what the flags say of a borrowed option, they say alone.
std::vector<given_value> values_for(
    const command_spec& command, const config_values& file, std::span<const given_value> flags, faults& found
) {
    std::vector<given_value> out;
    const auto copy_of = [&](std::string_view name, const auto& fits) {
        const auto section = file.find(name);
        if (section != file.end()) std::ranges::copy_if(section->second, std::back_inserter(out), fits);
    };
    copy_of(command.path, [](const given_value&) { return true; });
    // Whatever is wrong with that section has been said, and its values would only repeat it.
    if (lender_of(command).empty() || !found.empty()) return out;
    copy_of(lender_of(command), [&](const given_value& value) {
        const auto* const option = find_option(command, value.option);
        return option != nullptr && std::ranges::none_of(flags, [&](const given_value& flag) {
                   return flag.option == value.option;
               });
    });
    const auto several = std::ranges::adjacent_find(out, {}, &given_value::option);
    if (several != out.end()) {
        found.add(fmt::format("{}: one of several; say which with --{}", several->where, several->option));
        const auto is_same = [&](const given_value& value) { return value.option == several->option; };
        out.erase(std::remove_if(std::next(several), out.end(), is_same), out.end());
    }
    for (const given_value& value : out) {
        if (value.open) {
            found.add(fmt::format(
                "{}: {} needs a variable of the environment that is not set; set it, or give --{}",
                value.where,
                config_key(value.option),
                value.option
            ));
        }
    }
    return out;
}

int run_program(std::vector<std::string> words) {
    const auto code = [](exit_status status) { return static_cast<int>(status); };
    faults found;
    const command_line line = parse_command_line(std::move(words), found);
    if (!line.help.empty()) {
        return code(print(line.help));
    }
    if (line.command == nullptr) {
        print_faults(line, found);
        return code(exit_status::usage);
    }
    config_values file;
    std::optional<settings> schemas;
    for (const given_value& flag : line.flags) {
        if (flag.option == "config") {
            file = read_config(flag.text, process_environment(), found, line.command->path);
            if (const auto section = file.find(schemas_section().path);
                section != file.end() && line.command->takes_schemas) {
                schemas = resolve_schemas(section->second, found);
                check_schema_files(*schemas, found);
            }
            check_other_sections(*line.command, file, found);
        }
    }
    settings values = settings::resolve(
        *line.command, values_for(*line.command, file, line.flags, found), line.flags, true, found
    );
    if (schemas) values.attach_schemas(std::move(*schemas));
    if (line.command->check != nullptr) line.command->check(values, found);
    if (!found.empty()) {
        print_faults(line, found);
        return code(found.status());
    }
    return code(line.command->run(values));
}

}  // namespace millrace::app
