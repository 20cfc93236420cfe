#include "settings.hpp"

#include "assert.hpp"
#include "units.hpp"

#include <millrace/url.hpp>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace millrace::app {

namespace {

/// An option whose value stands at a place in a file, or was given as a flag.
std::string name_of(const option_spec& option, std::string_view where) {
    if (where.empty()) return fmt::format("--{}", option.name);
    return fmt::format("{}: {}", where, config_key(option.name));
}

bool names(std::string_view text, std::string_view key) {
    const auto part_of_name = [&](std::size_t i) {
        return i < text.size() && (text[i] == '_' || (text[i] >= 'a' && text[i] <= 'z'));
    };
    for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
        if (!(at > 0 && part_of_name(at - 1)) && !part_of_name(at + key.size())) return true;
    }
    return false;
}

/// A secret that comes from the environment is still its name.
std::string hidden(std::string_view shown) {
    constexpr std::string_view begin = "${ENV:";
    const bool is_name = shown.starts_with(begin) && shown.find('}') == shown.size() - 1;
    return is_name ? std::string{shown} : "***";
}

/// Takes the values of one source; the later source replaces what the earlier one gave.
void take(setting& into, std::span<const given_value> source, faults& found) {
    bool first = true;
    for (const given_value& value : source) {
        if (value.option != into.option->name) continue;
        const option_spec& option = value.leaf != nullptr ? *value.leaf : *into.option;
        if (const std::string why = misfit(option, value.text); !why.empty()) {
            found.add(fmt::format("{}: {}", name_of(option, value.where), why));
            continue;
        }
        if (!first && !into.option->many) {
            found.add(fmt::format("{} is given twice; give it once", name_of(*into.option, value.where)));
            continue;
        }
        const std::string shown = into.option->secret ? hidden(value.shown) : without_secrets(value.shown);
        into.shown = first ? shown : into.shown + ", " + shown;
        if (first) {
            into.values.clear();
            into.places.clear();
            into.parts.clear();
        }
        first = false;
        into.values.push_back(value.text);
        into.given = true;
        into.where = value.where;
        into.places.push_back(value.where);
        if (value.leaf != nullptr) into.parts.push_back(value);
        into.origin = value.where.empty() ? "flag" : value.where.substr(0, value.where.rfind(':'));
    }
}

struct bound {
    std::string_view lower;
    std::string_view upper;
};

constexpr std::array<bound, 6> bounds{{
    {"retry-min", "retry-max"},
    {"backoff-min", "backoff-max"},
    {"poll-min", "poll-max"},
    {"fetch-rows", "window-rows"},
    {"fetch-bytes", "window-bytes"},
    {"read-bytes", "memory-bytes"},
}};

std::uint64_t measure(const setting& s) {
    if (s.values.empty()) return 0;
    switch (s.option->kind) {
        case option_kind::duration:
            return static_cast<std::uint64_t>(parse_duration(s.values.front()).value().count());
        case option_kind::bytes:
            return parse_bytes(s.values.front()).value();
        default:
            return parse_count(s.values.front()).value();
    }
}

/// Of two values of which one bounds the other, the one that is not given follows the one that is.
void follow_bounds(std::vector<setting>& all) {
    const auto find = [&](std::string_view name) {
        return std::ranges::find_if(all, [&](const setting& s) { return s.option->name == name; });
    };
    for (const bound& pair : bounds) {
        const auto lower = find(pair.lower);
        const auto upper = find(pair.upper);
        if (lower == all.end() || upper == all.end() || lower->given == upper->given) continue;
        if (measure(*lower) <= measure(*upper)) continue;
        const setting& given = lower->given ? *lower : *upper;
        setting& other = lower->given ? *upper : *lower;
        other.values = given.values;
        other.shown = given.shown;
        other.origin = fmt::format("as {}", config_key(given.option->name));
    }
}

}  // namespace

settings settings::resolve(
    const command_spec& command,
    std::span<const given_value> from_file,
    std::span<const given_value> flags,
    bool complete,
    faults& found
) {
    settings out;
    out.command_ = &command;
    for (const option_spec& option : command.options) {
        setting s{.option = &option, .values = {}, .shown = {}, .origin = "default"};
        if (!option.fallback.empty()) {
            s.values.emplace_back(option.fallback);
            s.shown = option.fallback;
        }
        const std::size_t before = found.lines().size();
        take(s, from_file, found);
        take(s, flags, found);
        const bool faulty = found.lines().size() != before;
        if (complete && option.required && s.values.empty() && !faulty && !found.unread()) {
            const auto name = option.positional ? std::string{} : fmt::format("--{} ", option.name);
            found.add(fmt::format(
                "{} is missing; give {}{}{}",
                option.positional ? option.placeholder : std::string_view{name}.substr(0, name.size() - 1),
                name,
                option.placeholder,
                command.configurable
                    ? fmt::format(", or \"{}\" in the configuration", config_key(option.name))
                    : ""
            ));
        }
        out.settings_.push_back(std::move(s));
    }
    follow_bounds(out.settings_);
    return out;
}

void settings::attach_schemas(settings section) {
    schemas_ = std::make_shared<const settings>(std::move(section));
}

const setting& settings::find(std::string_view name) const {
    for (const setting& s : settings_) {
        if (s.option->name == name) return s;
    }
    assertion_failed("the option is in the command's table", __FILE__, __LINE__);
}

const setting& settings::find(std::string_view name, option_kind kind) const {
    const setting& s = find(name);
    MILLRACE_ASSERT(s.option->kind == kind);
    return s;
}

std::string settings::named(std::string_view name) const {
    const setting& s = find(name);
    return name_of(*s.option, s.where);
}

std::string settings::named(std::string_view name, std::size_t index) const {
    const setting& s = find(name);
    return name_of(*s.option, index < s.places.size() ? s.places[index] : s.where);
}

std::string settings::placed(std::string_view fault) const {
    for (const setting& s : settings_) {
        // The names of the others, such as `group`, are words of a sentence, too.
        const bool measure = s.option->kind >= option_kind::count;
        if (measure && !s.where.empty() && names(fault, config_key(s.option->name)))
            return fmt::format("{}: {}", s.where, fault);
    }
    return std::string{fault};
}

bool settings::flag(std::string_view name) const {
    const setting& s = find(name, option_kind::flag);
    return !s.values.empty() && s.values.front() == "true";
}

std::string settings::text(std::string_view name) const {
    const setting& s = find(name);
    return s.values.empty() ? std::string{} : s.values.front();
}

const std::vector<std::string>& settings::list(std::string_view name) const {
    return find(name).values;
}

std::uint64_t settings::count(std::string_view name) const {
    const setting& s = find(name, option_kind::count);
    return s.values.empty() ? 0 : parse_count(s.values.front()).value();
}

double settings::share(std::string_view name) const {
    const setting& s = find(name, option_kind::share);
    return s.values.empty() ? 0 : parse_share(s.values.front()).value();
}

nanoseconds settings::duration(std::string_view name) const {
    const setting& s = find(name);
    if (s.values.empty()) return nanoseconds{0};
    return s.option->kind == option_kind::seconds ? parse_seconds(s.values.front()).value()
                                                  : parse_duration(s.values.front()).value();
}

std::uint64_t settings::bytes(std::string_view name) const {
    const setting& s = find(name, option_kind::bytes);
    return s.values.empty() ? 0 : parse_bytes(s.values.front()).value();
}

}  // namespace millrace::app
