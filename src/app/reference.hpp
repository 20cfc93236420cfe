/// The reference of all configuration keys as Markdown: what stands in docs/configuration.md. Pure.
#pragma once

#include <string>

namespace millrace::app {

/// One table a section: key, kind, default, limits, meaning, example.
[[nodiscard]] std::string config_reference();

}  // namespace millrace::app
