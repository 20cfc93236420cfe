/// What `adapters.hpp` opens on Kafka; only in builds that have it.
#pragma once

#include "adapters.hpp"

namespace millrace::kafka_adapters {

[[nodiscard]] result<opened_sink> open_sink(const url& where, host& home, const sink_options& options);
[[nodiscard]] result<opened_dead_letters> open_dead_letters(
    const url& where, const std::string& origin, host& home
);

[[nodiscard]] result<std::unique_ptr<group_leader>> open_group_leader(
    const leadership_options& options, const worker_id& worker, const url& sink, host& home
);

}  // namespace millrace::kafka_adapters
