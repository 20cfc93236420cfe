/// The table that describes every command and option once. The command line, the configuration file,
/// `config explain` and docs/configuration.md are all made from it.
#pragma once

#include "faults.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::app {

class settings;

enum class option_kind : std::uint8_t {
    flag,      ///< Present or not; in a file `true` or `false`.
    text,      ///< Any text.
    name,      ///< Up to 256 bytes of UTF-8 without control characters.
    choice,    ///< One of `choices`.
    count,     ///< A whole number.
    share,     ///< A number from 0 to 1.
    duration,  ///< A number and a unit.
    seconds,   ///< As `duration`; a number without a unit is seconds.
    bytes,     ///< A size with a unit.
    version,   ///< `latest`, `header` or a whole number from 1.
    rules,     ///< A list of mappings; only in a file.
};

struct option_spec {
    std::string_view name;  ///< Without the dashes; in a file `-` is written `_`.
    option_kind kind{option_kind::text};
    std::string_view placeholder;  ///< What help shows for the value, such as `URL`.
    std::string_view fallback;     ///< The default as text; empty when there is none.
    std::string_view meaning;
    std::string_view least{};    ///< Smallest value, as text.
    std::string_view most{};     ///< Largest value, as text.
    std::string_view choices{};  ///< `a|b|c`.
    std::string_view example{};  ///< For the docs, where the default is no example.
    bool required{false};
    bool many{false};        ///< May be given more than once.
    bool positional{false};  ///< The value may stand without the option's name.
    bool rest{false};        ///< Takes every word that nothing else takes, as it is.
    bool in_file{true};      ///< May stand in a configuration file.
    bool secret{false};      ///< Never shown, unless as the name of a variable of the environment.
};

struct command_spec {
    std::string_view path;  ///< Its words: `outbox dead list`.
    std::string_view about;
    std::string_view example;
    std::vector<option_spec> options;

    /// Adds faults that can be found without opening anything. Called also when other faults are known;
    /// faulty values then read as their defaults.
    void (*check)(const settings&, faults&){nullptr};

    exit_status (*run)(const settings&){nullptr};

    /// Has a section in the configuration file, and `--config`.
    bool configurable{false};

    /// Uses the section `schemas` of the file, too.
    bool takes_schemas{false};
};

/// All commands, in the order of help.
[[nodiscard]] std::span<const command_spec> commands();

/// Null when there is none of that path.
[[nodiscard]] const command_spec* find_command(std::string_view path);

/// What a section of the configuration file is read by: a command, or what several of them share.
[[nodiscard]] const command_spec* find_section(std::string_view name);
[[nodiscard]] std::vector<const command_spec*> sections();

[[nodiscard]] const option_spec* find_option(const command_spec& command, std::string_view name);

/// `drain-limit` as it stands in a file: `drain_limit`.
[[nodiscard]] std::string config_key(std::string_view option);

/// The limits in words, `from 1s to 10m`, `at least 1`; empty when there are none.
[[nodiscard]] std::string limits_of(const option_spec& option);

/// Why a value does not fit its option; empty when it does.
[[nodiscard]] std::string misfit(const option_spec& option, std::string_view value);

}  // namespace millrace::app
