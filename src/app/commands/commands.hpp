/// The entries of the table of commands, one function a group of commands.
#pragma once

#include "../option.hpp"

#include <millrace/time.hpp>

#include <string_view>
#include <vector>

namespace millrace::app {

void add_relay_commands(std::vector<command_spec>& list);
void add_consume_commands(std::vector<command_spec>& list);
void add_outbox_commands(std::vector<command_spec>& list);
void add_outbox_check_command(std::vector<command_spec>& list);
void add_dead_letter_commands(std::vector<command_spec>& list);
void add_stream_commands(std::vector<command_spec>& list);
void add_group_commands(std::vector<command_spec>& list);
void add_config_commands(std::vector<command_spec>& list);
void add_version_command(std::vector<command_spec>& list);

/// Options of several commands. The views are of static storage.
[[nodiscard]] option_spec outbox_option();
[[nodiscard]] option_spec stream_option();
[[nodiscard]] option_spec group_option();
[[nodiscard]] option_spec state_option();
[[nodiscard]] option_spec json_option();
[[nodiscard]] option_spec poison_option();
[[nodiscard]] option_spec wait_option();
[[nodiscard]] milliseconds wait_of(const settings& values);

[[nodiscard]] option_spec count_option(
    std::string_view name, std::string_view fallback, std::string_view most, std::string_view meaning
);
[[nodiscard]] option_spec bytes_option(
    std::string_view name, std::string_view fallback, std::string_view meaning
);
[[nodiscard]] option_spec time_option(
    std::string_view name,
    std::string_view fallback,
    std::string_view least,
    std::string_view most,
    std::string_view meaning
);
void add_retry_options(std::vector<option_spec>& options);

/// `--config`, and logging and the admin server.
void add_process_options(std::vector<option_spec>& options);

}  // namespace millrace::app
