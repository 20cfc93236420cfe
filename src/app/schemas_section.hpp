/// The section `schemas:` of a configuration file: the registry, and the rules for topics. Of the commands
/// that take it (`command_spec::takes_schemas`).
#pragma once

#include "option.hpp"
#include "settings.hpp"

#include <millrace/schemas.hpp>

#include <span>
#include <string_view>

namespace millrace::app {

/// As a command that cannot be called.
[[nodiscard]] const command_spec& schemas_section();

/// The keys of a rule, and of the mappings `value` and `key` in it.
[[nodiscard]] std::span<const option_spec> rule_keys();
[[nodiscard]] std::span<const option_spec> coding_keys();

/// The settings of that section must be free of faults.
[[nodiscard]] schema_settings schema_settings_of(const settings& section);

}  // namespace millrace::app
