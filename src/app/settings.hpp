/// The values that a command runs with: flags before the configuration file before defaults, each with its
/// origin. Immutable once resolved.
#pragma once

#include "faults.hpp"
#include "option.hpp"

#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::app {

/// A value as it was given, by flag or in a file.
struct given_value {
    std::string option;
    std::string text;   ///< Environment variables are filled in.
    std::string shown;  ///< As it was written: a secret from the environment is still its name.
    std::string where;  ///< `FILE:LINE:COLUMN`; empty for a flag.
    bool open{false};   ///< It names variables of the environment that were not looked up.

    // Of a value within a rule.
    std::size_t rule{0};               ///< Which one, from 0.
    std::string key{};                 ///< `topic`, `value.mode`.
    const option_spec* leaf{nullptr};  ///< What the value is to be.
};

struct setting {
    const option_spec* option{nullptr};
    std::vector<std::string> values;  ///< Empty: not given and no default.
    std::string shown;                ///< As it was written, without the secrets of an address.
    std::string origin;  ///< `default`, `flag`, `FILE:LINE`, or `as KEY`, whose value it follows.
    std::string where;   ///< `FILE:LINE:COLUMN` of the last value; empty unless it comes from a file.
    std::vector<std::string> places{};  ///< The same of each value.
    std::vector<given_value> parts{};   ///< Of rules.
    bool given{false};
};

class settings {
public:
    /// Checks every value against its option; adds what is wrong. A faulty value reads as the default. With
    /// `complete`, a missing required option is a fault, too.
    static settings resolve(
        const command_spec& command,
        std::span<const given_value> from_file,
        std::span<const given_value> flags,
        bool complete,
        faults& found
    );

    [[nodiscard]] const command_spec& command() const noexcept { return *command_; }
    [[nodiscard]] std::span<const setting> all() const noexcept { return settings_; }

    /// The option must be in the command's table, and of the kind that is asked for.
    [[nodiscard]] bool has(std::string_view name) const { return !find(name).values.empty(); }
    [[nodiscard]] bool given(std::string_view name) const { return find(name).given; }
    [[nodiscard]] bool flag(std::string_view name) const;
    [[nodiscard]] std::string text(std::string_view name) const;
    [[nodiscard]] const std::vector<std::string>& list(std::string_view name) const;
    [[nodiscard]] const std::vector<given_value>& parts(std::string_view name) const {
        return find(name).parts;
    }
    [[nodiscard]] std::uint64_t count(std::string_view name) const;
    [[nodiscard]] double share(std::string_view name) const;
    [[nodiscard]] nanoseconds duration(std::string_view name) const;
    [[nodiscard]] std::uint64_t bytes(std::string_view name) const;

    /// Of the section `schemas`; null when the file has none, or there is no file.
    [[nodiscard]] const settings* schemas() const noexcept { return schemas_.get(); }
    void attach_schemas(settings section);

    /// How a message names an option: by the place of its value in the file, else as a flag.
    [[nodiscard]] std::string named(std::string_view name) const;

    /// The same of one value of a list.
    [[nodiscard]] std::string named(std::string_view name, std::size_t index) const;

    /// A fault of several options together, behind the place of the first that it names and the file gives.
    [[nodiscard]] std::string placed(std::string_view fault) const;

private:
    [[nodiscard]] const setting& find(std::string_view name) const;
    [[nodiscard]] const setting& find(std::string_view name, option_kind kind) const;

    const command_spec* command_{nullptr};
    std::vector<setting> settings_;
    std::shared_ptr<const settings> schemas_;
};

}  // namespace millrace::app
