#include "option.hpp"

#include "commands/commands.hpp"
#include "record/bytes_text.hpp"
#include "schemas_section.hpp"
#include "text/nearest.hpp"
#include "units.hpp"

#include <millrace/url.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace millrace::app {

namespace {

std::vector<std::string_view> split(std::string_view text, char by) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
        const std::size_t end = text.find(by);
        out.push_back(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
    return out;
}

/// A choice `dead-letter=URL` takes any value that begins with `dead-letter=`.
bool chosen(std::string_view choice, std::string_view value) {
    const std::size_t open = choice.find('=');
    if (open == std::string_view::npos) return choice == value;
    const std::string_view head = choice.substr(0, open + 1);
    return value.size() > head.size() && value.substr(0, head.size()) == head;
}

std::string misfit_of_choice(const option_spec& option, std::string_view value) {
    const std::vector<std::string_view> choices = split(option.choices, '|');
    for (const std::string_view choice : choices) {
        if (chosen(choice, value)) return {};
    }
    std::vector<std::string_view> words;
    words.reserve(choices.size());
    for (const std::string_view choice : choices)
        words.push_back(choice.substr(0, choice.find('=')));
    const auto near = std::find(words.begin(), words.end(), nearest(value.substr(0, value.find('=')), words));
    return fmt::format(
        "{} is not one of {}{}",
        in_quotes(without_secrets(value)),
        fmt::join(choices, ", "),
        near == words.end()
            ? ""
            : fmt::format("; did you mean \"{}\"?", choices[static_cast<std::size_t>(near - words.begin())])
    );
}

/// Names stand in logs, tables and the keys of stores.
std::string misfit_of_name(std::string_view value) {
    constexpr std::size_t most = 256;
    if (value.empty()) return "the value is empty";
    if (value.size() > most) return fmt::format("{} is longer than {} bytes", in_quotes(value), most);
    if (!is_utf8(value)) return "the value is not UTF-8";
    const bool plain = std::none_of(value.begin(), value.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    });
    return plain ? std::string{} : fmt::format("{} has control characters; leave them out", in_quotes(value));
}

/// `read` turns text into something that compares.
template <class Read>
std::string misfit_of_range(const option_spec& option, std::string_view value, Read read) {
    const auto parsed = read(value);
    if (!parsed) return parsed.error().detail;
    const bool low = !option.least.empty() && *parsed < read(option.least).value();
    const bool high = !option.most.empty() && *parsed > read(option.most).value();
    if (low) return fmt::format("{} is too small; give {}", in_quotes(value), limits_of(option));
    if (high) return fmt::format("{} is too large; give {}", in_quotes(value), limits_of(option));
    return {};
}

std::string misfit_of_version(std::string_view value) {
    constexpr std::uint64_t most = 2'147'483'647;
    if (value == "latest" || value == "header") return {};
    const auto number = parse_count(value);
    if (number && *number >= 1 && *number <= most) return {};
    return fmt::format("{} is neither latest nor header nor a number from 1", in_quotes(value));
}

}  // namespace

std::span<const command_spec> commands() {
    static const std::vector<command_spec> all = [] {
        std::vector<command_spec> list;
        add_relay_commands(list);
        add_consume_commands(list);
        add_outbox_commands(list);
        add_outbox_check_command(list);
        add_dead_letter_commands(list);
        add_stream_commands(list);
        add_group_commands(list);
        add_config_commands(list);
        add_version_command(list);
        return list;
    }();
    return all;
}

const command_spec* find_command(std::string_view path) {
    for (const command_spec& command : commands()) {
        if (command.path == path) return &command;
    }
    return nullptr;
}

std::vector<const command_spec*> sections() {
    std::vector<const command_spec*> all;
    for (const command_spec& command : commands()) {
        if (command.configurable) all.push_back(&command);
    }
    all.push_back(&schemas_section());
    return all;
}

const command_spec* find_section(std::string_view name) {
    const auto all = sections();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto* s) { return s->path == name; });
    return found == all.end() ? nullptr : *found;
}

const option_spec* find_option(const command_spec& command, std::string_view name) {
    for (const option_spec& option : command.options) {
        if (option.name == name) return &option;
    }
    return nullptr;
}

std::string config_key(std::string_view option) {
    std::string key{option};
    std::replace(key.begin(), key.end(), '-', '_');
    return key;
}

std::string limits_of(const option_spec& option) {
    if (!option.least.empty() && !option.most.empty())
        return fmt::format("{} to {}", option.least, option.most);
    if (!option.least.empty()) return fmt::format("at least {}", option.least);
    if (!option.most.empty()) return fmt::format("at most {}", option.most);
    return {};
}

std::string misfit(const option_spec& option, std::string_view value) {
    switch (option.kind) {
        case option_kind::flag:
            return value == "true" || value == "false"
                       ? ""
                       : fmt::format("{} is not true or false", in_quotes(value));
        case option_kind::text:
            return value.empty() && option.required ? std::string{"the value is empty"} : std::string{};
        case option_kind::name:
            return misfit_of_name(value);
        case option_kind::choice:
            return misfit_of_choice(option, value);
        case option_kind::count:
            return misfit_of_range(option, value, parse_count);
        case option_kind::share:
            return misfit_of_range(option, value, parse_share);
        case option_kind::duration:
            return misfit_of_range(option, value, parse_duration);
        case option_kind::seconds:
            return misfit_of_range(option, value, parse_seconds);
        case option_kind::bytes:
            return misfit_of_range(option, value, parse_bytes);
        case option_kind::version:
            return misfit_of_version(value);
        case option_kind::rules:
            break;
    }
    return {};
}

}  // namespace millrace::app
