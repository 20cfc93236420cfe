/// What `adapters.hpp` opens on Kinesis; only in builds that have AWS.
#pragma once

#include "adapters.hpp"
#include "kinesis_admin.hpp"

namespace millrace::kinesis_adapters {

[[nodiscard]] result<std::unique_ptr<record_source>> open_source(const url& where, host& home);
[[nodiscard]] result<opened_sink> open_sink(const url& where, host& home, const sink_options& options);

/// For the commands that make and change a stream; calls wait so long for a change to be done.
[[nodiscard]] result<std::unique_ptr<kinesis_admin>> open_admin(const url& where, milliseconds wait);

}  // namespace millrace::kinesis_adapters
