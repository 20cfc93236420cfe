#include "config.hpp"

#include "option.hpp"
#include "record/bytes_text.hpp"
#include "schemas_section.hpp"
#include "text/nearest.hpp"
#include "units.hpp"
#include "yaml_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

namespace millrace::app {

namespace {

constexpr std::size_t faults_max = 50;

/// Checks the tree against the table of options and takes the values.
class reader {
public:
    using kind = yaml_node::kind;

    reader(
        std::string_view file,
        std::vector<std::string_view> lines,
        const environment& variables,
        config_values& values,
        faults& found,
        std::string_view used
    )
        : file_(file),
          lines_(std::move(lines)),
          variables_(variables),
          values_(values),
          found_(found),
          used_(used) {}

    void take_document(const yaml_node& root) {
        if (root.what == kind::null) return;
        const std::vector<std::string_view> names = section_names();
        if (root.what != kind::map) {
            return complain(
                root.mark,
                fmt::format(
                    "expected a section such as \"{}:\", found {}",
                    fmt::join(names, ":\" or \""),
                    in_words(root.what)
                )
            );
        }
        std::set<std::string_view> seen;
        for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
            const yaml_node& name = root.items[i];
            const command_spec* command = find_section(name.text);
            if (name.what != kind::scalar) {
                complain(
                    name.mark, fmt::format("expected the name of a section, found {}", in_words(name.what))
                );
            } else if (command == nullptr) {
                complain(
                    name.mark,
                    fmt::format("unknown section {}{}", in_quotes(name.text), did_you_mean(name.text, names))
                );
            } else if (!seen.insert(name.text).second) {
                complain(name.mark, fmt::format("section \"{}\" is there twice", name.text));
            } else {
                take_section(*command, root.items[i + 1]);
            }
        }
    }

    void complain(const YAML::Mark& mark, std::string_view what) {
        if (found_.lines().size() < faults_max) found_.add(fmt::format("{}: {}", place(mark), what));
    }

private:
    static std::vector<std::string_view> section_names() {
        std::vector<std::string_view> names;
        for (const command_spec* const section : sections())
            names.push_back(section->path);
        return names;
    }

    [[nodiscard]] std::string place(const YAML::Mark& mark) const {
        return fmt::format("{}:{}:{}", file_, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1);
    }

    void take_section(const command_spec& command, const yaml_node& body) {
        if (body.what == kind::null) return;
        if (body.what != kind::map) {
            return complain(
                body.mark,
                fmt::format("section {} must hold keys and values, not {}", command.path, in_words(body.what))
            );
        }
        std::vector<std::string> keys;
        for (const option_spec& option : command.options)
            keys.push_back(config_key(option.name));
        std::set<std::string_view> seen;
        for (std::size_t i = 0; i + 1 < body.items.size(); i += 2) {
            const yaml_node& key = body.items[i];
            if (key.what != kind::scalar) {
                complain(
                    key.mark, fmt::format("expected a key of {}, found {}", command.path, in_words(key.what))
                );
                continue;
            }
            const auto known = std::find(keys.begin(), keys.end(), key.text);
            const auto index = static_cast<std::size_t>(known - keys.begin());
            if (known == keys.end() || !command.options[index].in_file) {
                complain(key.mark, unknown_key(command, keys, key.text));
            } else if (!seen.insert(key.text).second) {
                complain(key.mark, fmt::format("key \"{}\" is there twice in {}", key.text, command.path));
            } else {
                take_value(command, command.options[index], key, body.items[i + 1]);
            }
        }
    }

    static std::string unknown_key(
        const command_spec& command, const std::vector<std::string>& keys, const std::string& key
    ) {
        std::vector<std::string_view> candidates;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (keys[i] == key) {
                return fmt::format("\"{}\" of {} can only be given on the command line", key, command.path);
            }
            if (command.options[i].in_file) candidates.push_back(keys[i]);
        }
        return fmt::format(
            "unknown key {} in {}{}", in_quotes(key), command.path, did_you_mean(key, candidates)
        );
    }

    void take_value(
        const command_spec& command,
        const option_spec& option,
        const yaml_node& key,
        const yaml_node& value,
        bool in_list = false
    ) {
        if (value.what == kind::alias) {
            return complain(value.mark, "aliases are not supported; write the value out");
        }
        if (option.kind == option_kind::rules) return take_rules(key, value);
        if (value.what == kind::list && option.many && !in_list) {
            for (const yaml_node& item : value.items)
                take_value(command, option, key, item, true);
            return;
        }
        if (value.what != kind::scalar) {
            return complain(
                // The reader stands behind the gap already when it tells that nothing is there.
                value.what == kind::null ? key.mark : value.mark,
                fmt::format("{} must have one value, not {}", key.text, in_words(value.what))
            );
        }
        if (const auto why = beyond_its_line(lines_, value); !why.empty()) {
            found_.note_unread();  // it may have taken in the keys behind it
            return complain(value.mark, why);
        }
        add_value(
            command, {.option = std::string{option.name}, .text = {}, .shown = {}, .where = {}}, key, value
        );
    }

    void add_value(
        const command_spec& command, given_value made, const yaml_node& key, const yaml_node& value
    ) {
        const command_spec* const user = find_command(used_);
        const bool shared = &command == &schemas_section() && user != nullptr && user->takes_schemas;
        made.open = !used_.empty() && used_ != command.path && !shared;
        const bool borrowed =
            user != nullptr && lender_of(*user) == command.path && find_option(*user, made.option) != nullptr;
        auto filled = fill(key.text, value, made.open, borrowed);
        if (!filled) return;
        made.text = std::move(*filled);
        made.shown = value.text;
        made.where = place(value.mark);
        values_[std::string{command.path}].push_back(std::move(made));
    }

    void take_rules(const yaml_node& key, const yaml_node& value) {
        if (value.what != kind::list) {
            return complain(
                value.what == kind::null ? key.mark : value.mark,
                fmt::format(
                    "{} must be a list of rules, each with its topic, not {}", key.text, in_words(value.what)
                )
            );
        }
        for (std::size_t i = 0; i < value.items.size(); ++i)
            take_mapping(value.items[i], "a rule", {}, rule_keys(), i);
    }

    /// A rule, or one of the two mappings in it.
    void take_mapping(
        const yaml_node& body,
        std::string_view what,
        const std::string& path,
        std::span<const option_spec> known,
        std::size_t rule
    ) {
        if (body.what != kind::map)
            return complain(
                body.mark, fmt::format("{} must hold keys and values, not {}", what, in_words(body.what))
            );
        std::vector<std::string> names;
        for (const option_spec& option : known)
            names.push_back(config_key(option.name));
        std::set<std::string_view> seen;
        for (std::size_t i = 0; i + 1 < body.items.size(); i += 2) {
            const yaml_node& key = body.items[i];
            const auto at = std::find(names.begin(), names.end(), key.text);
            if (key.what != kind::scalar || at == names.end()) {
                const std::vector<std::string_view> candidates(names.begin(), names.end());
                complain(
                    key.mark,
                    fmt::format(
                        "unknown key {} in {}{}",
                        in_quotes(key.text),
                        what,
                        did_you_mean(key.text, candidates)
                    )
                );
            } else if (!seen.insert(key.text).second) {
                complain(key.mark, fmt::format("key \"{}\" is there twice in {}", key.text, what));
            } else {
                take_of_rule(
                    known[static_cast<std::size_t>(at - names.begin())], path, key, body.items[i + 1], rule
                );
            }
        }
        if (path.empty() && !seen.contains("topic"))
            complain(body.mark, "a rule without its topic; `*` is each");
        if (path.empty() && !seen.contains("value") && !seen.contains("key"))
            complain(
                body.mark, "a rule that says neither value nor key; `value: none` leaves both as they are"
            );
        if (!path.empty() && body.items.empty())
            complain(body.mark, fmt::format("{} is empty; `none` leaves it as it is", what));
    }

    void take_of_rule(
        const option_spec& option,
        const std::string& path,
        const yaml_node& key,
        const yaml_node& value,
        std::size_t rule
    ) {
        const bool is_part = path.empty() && option.name != "topic";
        if (is_part && value.what == kind::map)
            return take_mapping(
                value,
                key.text == "key" ? "the key of a rule" : "the value of a rule",
                key.text + ".",
                coding_keys(),
                rule
            );
        if (value.what != kind::scalar) {
            return complain(
                value.what == kind::null ? key.mark : value.mark,
                fmt::format("{} must have one value, not {}", key.text, in_words(value.what))
            );
        }
        if (const auto why = beyond_its_line(lines_, value); !why.empty()) {
            found_.note_unread();
            return complain(value.mark, why);
        }
        // `value: avro` is short for its mode.
        given_value made{.option = "rules", .text = {}, .shown = {}, .where = {}};
        made.rule = rule;
        made.key = is_part ? key.text + ".mode" : path + key.text;
        made.leaf = is_part ? &coding_keys().front() : &option;
        add_value(schemas_section(), std::move(made), key, value);
    }

    /// Replaces each `${ENV:NAME}`; with `open`, leaves it (if `borrowed`, only one that is not set), and
    /// says whether there is one.
    std::optional<std::string> fill(std::string_view key, const yaml_node& value, bool& open, bool borrowed) {
        const bool leave = std::exchange(open, false);
        constexpr std::string_view begin = "${ENV:";
        std::string_view text = value.text;
        std::string out;
        while (true) {
            const std::size_t at = text.find(begin);
            out += text.substr(0, at);
            if (at == std::string_view::npos) return out;
            const std::size_t end = text.find('}', at);
            if (end == std::string_view::npos) {
                complain(value.mark, fmt::format("{} lacks the closing brace of ${{ENV:NAME}}", key));
                return std::nullopt;
            }
            const std::string name{text.substr(at + begin.size(), end - at - begin.size())};
            const auto variable = name.empty() || (leave && !borrowed) ? std::nullopt : variables_(name);
            if (leave && !name.empty() && !variable) {
                open = true;
                out += text.substr(at, end + 1 - at);
                text.remove_prefix(end + 1);
                continue;
            }
            if (!variable) {
                complain(
                    value.mark,
                    fmt::format(
                        "{} needs the environment variable {}, which is not set", key, in_quotes(name)
                    )
                );
                return std::nullopt;
            }
            out += *variable;
            text.remove_prefix(end + 1);
        }
    }

    std::string_view file_;
    std::vector<std::string_view> lines_;
    const environment& variables_;
    config_values& values_;
    faults& found_;
    std::string_view used_;
};

/// The whole file, or why it cannot be used.
result<std::string> slurp(const std::string& file) {
    const auto unusable = [&](int code) {
        return fail(
            code == ENOENT ? errc::not_found : errc::permission_denied,
            fmt::format("{}: the configuration file cannot be read: {}", file, std::strerror(code))
        );
    };
    // Without O_NONBLOCK the opening of a pipe would wait for a writer.
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return unusable(errno);
    struct closer {
        int fd;
        ~closer() { ::close(fd); }
    } const close_at_end{fd};
    struct stat about {};
    if (::fstat(fd, &about) != 0) return unusable(errno);
    if (!S_ISREG(about.st_mode)) {
        return fail(
            errc::not_found, fmt::format("{}: the configuration is not a regular file; write it to one", file)
        );
    }
    std::string text(config_bytes_max + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t n = ::read(fd, text.data() + size, text.size() - size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return unusable(errno);
        if (n == 0) break;
        size += static_cast<std::size_t>(n);
    }
    text.resize(size);
    return text;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (true) {
        const auto end = text.find('\n');
        lines.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return lines;
        text.remove_prefix(end + 1);
    }
}

/// How many bytes at the front are UTF-8.
std::size_t valid_bytes(std::string_view line) {
    std::size_t valid = 0;
    for (std::size_t end = 1; end <= line.size() && end <= valid + 4; ++end)
        if (is_utf8(line.substr(valid, end - valid))) valid = end;
    return valid;
}

/// What the parser found, in words that name the cause where its own do not.
std::string reason_of(const YAML::Exception& what, const std::vector<std::string_view>& lines) {
    if (what.msg == YAML::ErrorMsg::BAD_FILE) return "it is nested too deeply";
    // A tab in the indentation shows where the next token is looked for: on its line, or on one before.
    const auto last = std::min(lines.size(), static_cast<std::size_t>(std::max(what.mark.line, 0)) + 1);
    for (std::size_t i = last; i > 0 && i + 2 > last; --i) {
        const auto indent = lines[i - 1].substr(0, lines[i - 1].find_first_not_of(" \t"));
        if (indent.find('\t') != std::string_view::npos)
            return fmt::format("line {} is indented by a tab; YAML indents by spaces", i);
    }
    return what.msg;
}

}  // namespace

environment process_environment() {
    return [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        return value == nullptr ? std::nullopt : std::optional<std::string>{value};
    };
}

config_values parse_config(
    std::string_view file,
    std::string_view text,
    const environment& variables,
    faults& found,
    std::string_view used
) {
    config_values values;
    if (text.size() > config_bytes_max) {
        found.add(
            fmt::format("{}: larger than {}; this is no configuration", file, format_bytes(config_bytes_max))
        );
        return values;
    }
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    const auto lines = lines_of(text);
    reader take(file, lines, variables, values, found, used);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (is_utf8(lines[i])) continue;
        YAML::Mark at;
        at.line = static_cast<int>(i);
        at.column = static_cast<int>(valid_bytes(lines[i]));
        found.note_unread();
        take.complain(at, "not UTF-8 from here on; save the file as UTF-8");
        return values;
    }
    try {
        std::istringstream in{std::string{text}};
        YAML::Parser parser(in);
        tree_builder tree;
        if (!parser.HandleNextDocument(tree)) return values;
        take.take_document(tree.root());
        tree_builder second;
        if (parser.HandleNextDocument(second))
            take.complain(second.root().mark, "a second document begins here; keep one");
    } catch (const YAML::Exception& e) {
        found.note_unread();
        take.complain(e.mark, fmt::format("not valid YAML: {}", reason_of(e, lines)));
    } catch (const std::exception& e) {
        found.note_unread();
        found.add(fmt::format("{}: not readable as YAML: {}", file, e.what()));
    }
    return values;
}

config_values read_config(
    const std::string& file, const environment& variables, faults& found, std::string_view used
) {
    const auto text = slurp(file);
    if (!text) {
        found.note_unread();
        found.add(text.error());
        return {};
    }
    return parse_config(file, *text, variables, found, used);
}

}  // namespace millrace::app
