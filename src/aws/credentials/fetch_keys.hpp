/// Carries out a plan: asks whoever gives the keys, and waits for the outcome.
///
/// Blocks, so it has a thread of its own (`key_chain.hpp`). Thread-safe as far as the tools are. Errors name
/// who was asked, and never hold keys, tokens, or what a program printed.
#pragma once

#include "credentials/ask.hpp"
#include "credentials/key_plan.hpp"
#include "http.hpp"
#include "keys.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>

namespace millrace::aws {

struct fetch_options {
    milliseconds agent_timeout{1'000};  ///< Of one question to a container's agent or to an instance.
    milliseconds sts_timeout{10'000};   ///< Of one question to STS.
    persistence asking;                 ///< Of each question.
    milliseconds program_timeout{60'000};
    std::size_t program_bytes_max{64'000};  ///< Printed by the program.
};

struct fetch_tools {
    http& by;
    fetch_options options;
    std::function<wall_time()> now;
    std::stop_token stop;  ///< Ends every wait with `cancelled`.
};

/// The keys that the plan leads to.
[[nodiscard]] result<aws_keys> fetch_keys(const key_plan& plan, const fetch_tools& with);

/// The parts of it, one for each origin.
[[nodiscard]] result<aws_keys> fetch_from(const keys_from::container& agent, const fetch_tools& with);
[[nodiscard]] result<aws_keys> fetch_from(const keys_from::instance& service, const fetch_tools& with);
[[nodiscard]] result<aws_keys> fetch_from(const keys_from::program& program, const fetch_tools& with);

/// STS by a token, unsigned.
[[nodiscard]] result<aws_keys> fetch_by_web_identity(
    const keys_from::web_identity& identity, const sts_place& sts, const fetch_tools& with
);

/// STS by other keys.
[[nodiscard]] result<aws_keys> fetch_by_role(
    const role& as, const aws_keys& by, const sts_place& sts, const fetch_tools& with
);

}  // namespace millrace::aws
