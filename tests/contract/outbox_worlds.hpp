/// The implementations of an outbox that the contract suite runs against.
#pragma once

#include "contract/outbox_source_contract.hpp"

#include <memory>

namespace millrace::test {

[[nodiscard]] std::unique_ptr<outbox_world> make_sqlite_outbox_world();
[[nodiscard]] std::unique_ptr<outbox_world> make_fake_outbox_world();
[[nodiscard]] std::unique_ptr<outbox_world> make_postgres_outbox_world();

/// In PostgreSQL, on a table of Millrace's columns that is split by ranges of id.
[[nodiscard]] std::unique_ptr<outbox_world> make_partitioned_outbox_world();

}  // namespace millrace::test
