#include "local_admin.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using support::run;

TEST(Examples, AnOrderGoesFromItsTransactionThroughRelayAndConsumer) {
    const support::temporary_folder folder;
    const auto database = folder.file("shop.db");
    const auto streams = "local:" + folder.file("streams.db");
    auto admin = local_admin::open_or_create(folder.file("streams.db"));
    ASSERT_TRUE(admin);
    ASSERT_TRUE(admin->create_stream("orders", 2));

    for (const auto* order : {"o-1", "it's \"2\""}) {
        const auto written = run({MILLRACE_EXAMPLE_OUTBOX_WRITER, database, order});
        ASSERT_EQ(written.status, 0) << written.errors;
    }
    EXPECT_EQ(run({MILLRACE_EXAMPLE_OUTBOX_WRITER, database, "o-1"}).status, 1) << "the order exists";

    const auto relayed = run({MILLRACE_EXAMPLE_RUN_RELAY, "sqlite:" + database, streams});
    ASSERT_EQ(relayed.status, 0) << relayed.errors;
    EXPECT_NE(relayed.output.find("delivered 2\n"), std::string::npos) << relayed.output;

    const auto state = "sqlite:" + folder.file("state.db");
    const auto consumed = run({MILLRACE_EXAMPLE_CONSUME, streams + "/orders", "billing", state});
    ASSERT_EQ(consumed.status, 0) << consumed.errors;
    EXPECT_NE(consumed.output.find("placed o-1\n"), std::string::npos) << consumed.output;
    EXPECT_NE(consumed.output.find("placed it's \"2\"\n"), std::string::npos) << consumed.output;
    EXPECT_EQ(run({MILLRACE_EXAMPLE_CONSUME, streams + "/orders", "billing", state}).output, "");
}

TEST(Examples, OneThatIsCalledWronglyPrintsItsUsage) {
    for (const auto* program :
         {MILLRACE_EXAMPLE_OUTBOX_WRITER,
          MILLRACE_EXAMPLE_RUN_RELAY,
          MILLRACE_EXAMPLE_CONSUME,
          MILLRACE_EXAMPLE_SHARE_WORK}) {
        const auto done = run({program});
        EXPECT_EQ(done.status, 2) << program;
        EXPECT_EQ(done.errors.find("usage: "), 0U) << program << ": " << done.errors;
    }
}

TEST(Examples, MailboxesAreSharedAndEachLetterIsHandledOnce) {
    const support::temporary_folder folder;
    const auto state = "sqlite:" + folder.file("state.db");
    const auto shared = run({MILLRACE_EXAMPLE_SHARE_WORK, state, "inbox-1", "inbox-2"});
    ASSERT_EQ(shared.status, 0) << shared.errors;
    for (const auto* line :
         {"worker 0 of 1\n", "inbox-1: letter 1\n", "inbox-1: letter 3\n", "inbox-2: letter 3\n"})
        EXPECT_NE(shared.output.find(line), std::string::npos) << shared.output;
    EXPECT_EQ(run({MILLRACE_EXAMPLE_SHARE_WORK, state, "inbox-1", "inbox-2"}).output, "worker 0 of 1\n");
}

}  // namespace
}  // namespace millrace::test
