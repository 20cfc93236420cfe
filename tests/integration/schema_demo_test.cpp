// The demonstration with schemas, as `./dev run postgres-kafka --schemas` runs it.
#include "support/process.hpp"
#include "support/services.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace millrace {
namespace {

using testing::ContainsRegex;

TEST(SchemaDemonstration, HasEachOrderDecodedInPythonAsItWasWritten) {
    const auto& servers = support::services();
    const auto done = support::run(
        {MILLRACE_DEMO_POSTGRES_KAFKA,
         "--millrace",
         MILLRACE_PROGRAM,
         "--postgres",
         servers.postgres,
         "--kafka",
         servers.kafka,
         "--registry",
         servers.registry,
         "--services",
         MILLRACE_SOURCE_DIR "/tests/services/services.sh",
         "--consumer",
         MILLRACE_SOURCE_DIR "/demo/decode_orders.py",
         "--orders",
         "500"},
        std::string{},
        std::chrono::seconds{90}
    );
    EXPECT_EQ(done.status, 0) << done.errors << done.output;
    EXPECT_THAT(done.output, ContainsRegex("lost +0\n"));
    EXPECT_THAT(done.output, ContainsRegex("out of order +0\n"));
    EXPECT_THAT(done.output, ContainsRegex("as written +500\n"));
    EXPECT_THAT(done.output, ContainsRegex("otherwise +0\n"));
}

}  // namespace
}  // namespace millrace
