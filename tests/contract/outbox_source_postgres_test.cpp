#include "contract/outbox_source_contract.hpp"
#include "contract/outbox_worlds.hpp"

namespace millrace::test {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Postgres,
    OutboxSource,
    testing::Values(
        outbox_source_case{"postgres", make_postgres_outbox_world, true, false},
        outbox_source_case{"postgres_partitioned", make_partitioned_outbox_world, true, false}
    ),
    [](const auto& which) { return which.param.name; }
);

}  // namespace
}  // namespace millrace::test
