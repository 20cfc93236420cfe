/// The log of the program: one line an event on standard error, key=value or JSON. Any thread may write.
#pragma once

#include <millrace/log.hpp>

#include <memory>
#include <string_view>

namespace millrace::app {

/// `level` and `format` as their options allow them.
[[nodiscard]] std::unique_ptr<log_sink> make_log(std::string_view level, std::string_view format);

}  // namespace millrace::app
