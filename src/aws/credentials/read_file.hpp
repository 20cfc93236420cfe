/// Reads the small files that credentials come in.
#pragma once

#include <millrace/error.hpp>

#include <cstddef>
#include <string>

namespace millrace::aws {

/// The whole file. `not_found`, `permission_denied`, or `invalid_config` when it is larger than `bytes_max`
/// or no file that ends. Thread-safe; never waits for a pipe.
[[nodiscard]] result<std::string> read_file(const std::string& path, std::size_t bytes_max);

}  // namespace millrace::aws
