/// The variables that credentials are looked for in, as a function, so that decisions do not depend on the
/// process they run in.
#pragma once

#include <functional>
#include <string>

namespace millrace::aws {

/// The value of a variable without blanks at its ends; empty when it is unset or blank.
using environment = std::function<std::string(const std::string& name)>;

/// That of this process. The function may be called from any thread while nobody changes the environment.
[[nodiscard]] environment process_environment();

}  // namespace millrace::aws
