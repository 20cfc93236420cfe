/// What `adapters.hpp` opens on Kinesis; only in builds that have AWS.
#pragma once

#include "adapters.hpp"

namespace millrace::kinesis_adapters {

[[nodiscard]] result<std::unique_ptr<record_source>> open_source(const url& where, host& home);
[[nodiscard]] result<opened_sink> open_sink(const url& where, host& home, const sink_options& options);
[[nodiscard]] result<opened_dead_letters> open_dead_letters(
    const url& where, const std::string& origin, host& home
);

[[nodiscard]] result<std::unique_ptr<stream_admin>> open_stream_admin(const url& where, milliseconds wait);

}  // namespace millrace::kinesis_adapters
