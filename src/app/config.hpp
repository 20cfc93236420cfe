/// Reads a configuration file strictly: sections are commands, keys are their long options with `_`.
///
/// Every fault is found and named by file, line and column. Text of any kind is safe to pass: nothing is
/// expanded but `${ENV:NAME}`, and size and depth are limited.
#pragma once

#include "faults.hpp"
#include "settings.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::app {

constexpr std::size_t config_bytes_max = 256 * 1024;

/// The value of an environment variable; nothing when it is not set.
using environment = std::function<std::optional<std::string>(const std::string&)>;
[[nodiscard]] environment process_environment();

/// Values by section.
using config_values = std::map<std::string, std::vector<given_value>, std::less<>>;

/// `file` is only for messages. Variables are looked up for the section `used` alone, so that nobody needs
/// those of another process; without one, for all.
[[nodiscard]] config_values parse_config(
    std::string_view file,
    std::string_view text,
    const environment& variables,
    faults& found,
    std::string_view used = {}
);

/// Reads the file first; one that is missing or unusable is a fault of status `failed`.
[[nodiscard]] config_values read_config(
    const std::string& file, const environment& variables, faults& found, std::string_view used = {}
);

}  // namespace millrace::app
