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

/// Reads and checks that section. Its own faults do not depend on those that the values of others add: call
/// it before them. Where the file could not be read without faults, what its values say together is not
/// judged.
[[nodiscard]] settings resolve_schemas(std::span<const given_value> values, faults& found);

/// Looks whether the files that it names can be read; for who would use them.
void check_schema_files(const settings& section, faults& found);

/// The section that gives, of the options that both have, what the flags of such a command leave open:
/// `relay` for one without a section of its own, otherwise empty.
[[nodiscard]] std::string_view lender_of(const command_spec& command);

/// The keys of a rule, and of the mappings `value` and `key` in it.
[[nodiscard]] std::span<const option_spec> rule_keys();
[[nodiscard]] std::span<const option_spec> coding_keys();

/// The settings of that section must be free of faults.
[[nodiscard]] schema_settings schema_settings_of(const settings& section);

}  // namespace millrace::app
