/// Turns the settings of a command into the options of the library, and checks what can be checked without
/// opening anything.
#pragma once

#include "faults.hpp"
#include "settings.hpp"

#include <millrace/consumer.hpp>
#include <millrace/error.hpp>
#include <millrace/options.hpp>
#include <millrace/relay.hpp>
#include <millrace/url.hpp>

#include <string_view>

namespace millrace::app {

[[nodiscard]] poison_policy policy_of(const std::string& text);
[[nodiscard]] relay_options relay_options_of(const settings& values);
[[nodiscard]] leadership_options leadership_options_of(const settings& values);
[[nodiscard]] relay_settings relay_settings_of(const settings& values);

[[nodiscard]] shard_options shard_options_of(const settings& values);

/// Fails when `--start` is neither a word nor a time.
[[nodiscard]] result<group_options> group_options_of(const settings& values);

/// The settings must have been checked.
[[nodiscard]] consumer_settings consumer_settings_of(const settings& values);

/// The first outbox that `--outbox` names; it must have been checked.
[[nodiscard]] url outbox_of(const settings& values);

/// The URL behind `--on-failure dead-letter=`; empty for the other policies.
[[nodiscard]] std::string dead_letter_url(const settings& values);

/// Adds what is wrong with each address that an option gives.
void check_url(const settings& values, std::string_view option, url_role role, faults& found);

/// Adds a fault when `--worker` is given and empty: left out, it is made up.
void check_worker(const settings& values, faults& found);

}  // namespace millrace::app
