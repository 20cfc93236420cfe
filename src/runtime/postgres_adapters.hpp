/// What `adapters.hpp` opens in PostgreSQL; only in builds that have it.
#pragma once

#include "adapters.hpp"

namespace millrace::postgres_adapters {

[[nodiscard]] result<std::unique_ptr<lease_store>> open_lease_store(
    const url& where, const group_key& group, host& home, nanoseconds lease
);
[[nodiscard]] result<std::vector<std::string>> known_groups(const url& state, const std::string& stream);
[[nodiscard]] result<std::vector<kept_row>> kept_positions(
    const url& where, kept_by whom, const std::string& under
);
[[nodiscard]] result<std::string> checkpoint_schema(const url& state);
[[nodiscard]] result<opened_outbox> open_outbox(const url& where, host& home, nanoseconds lease);
[[nodiscard]] result<std::unique_ptr<outbox_admin>> open_outbox_admin(
    const url& where, milliseconds wait, bool only_puts
);
[[nodiscard]] result<void> init_outbox(const url& where, milliseconds wait);
[[nodiscard]] result<std::string> outbox_script(const url& where, const outbox_roles& roles);
[[nodiscard]] result<opened_dead_letters> open_dead_letters(
    const url& where, const std::string& origin, host& home
);

}  // namespace millrace::postgres_adapters
