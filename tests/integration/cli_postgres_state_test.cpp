#include "cli_state.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

namespace millrace::cli {
namespace {

/// A role that may do what docs/state-stores.md grants it, and nothing else.
struct CliPostgresState : CliState {
    CliPostgresState() : CliState("") {
        sql.execute("CREATE ROLE " + role + " LOGIN");
        const auto& shared = support::services().postgres;
        kept_in = "postgresql://" + role + shared.substr(shared.find('@')) + "?schema=" + schema;
    }
    ~CliPostgresState() override {
        sql.execute(
            "DROP SCHEMA IF EXISTS " + schema + " CASCADE; DROP OWNED BY " + role + "; DROP ROLE " + role
        );
    }
    void grant() {
        sql.execute(
            "GRANT USAGE ON SCHEMA " + schema + " TO " + role + "; GRANT SELECT ON " + schema +
            ".millrace_meta TO " + role + "; GRANT SELECT, INSERT, UPDATE, DELETE ON " + schema +
            ".millrace_group, " + schema + ".millrace_worker, " + schema + ".millrace_shard TO " + role
        );
    }
    void make_tables_as_the_administrator() {
        ok({"stream", "create", "--stream", stream("other"), "--shards", "1"});
        const auto state = support::services().postgres + "?schema=" + schema;
        ok({"consume", "--stream", stream("other"), "--group", "g", "--state", state, "--idle-exit", "0.1"});
        grant();
    }

    support::sql_connection sql{support::services().postgres};
    std::string schema = support::unique_name("state");
    std::string role = support::unique_name("worker");
};

TEST_F(CliPostgresState, ResumesWhereItWasWithTheRightsOfTheDocs) {
    make_tables_as_the_administrator();
    resumes_where_it_was();
}

TEST_F(CliPostgresState, IsSharedByWorkersAndTakenOverFromADeadOne) {
    make_tables_as_the_administrator();
    is_shared_by_workers();
}

TEST_F(CliPostgresState, ADatabaseThatIsNotThereEndsAConsumerAtOnce) {
    make_stream();
    const auto& shared = support::services().postgres;
    kept_in = shared.substr(0, shared.rfind('/')) + "/" + support::unique_name("nowhere");
    for (const words& more : {words{}, words{"--idle-exit", "1h"}}) {
        const auto refused = millrace(of_group({"consume"}, more));
        EXPECT_EQ(refused.status, 1);
        EXPECT_THAT(refused.errors, HasSubstr("does not exist"));
    }
}

TEST_F(CliPostgresState, WithoutTheRightToMakeTablesShowsTheSql) {
    make_stream();
    auto refused = start(of_group({"consume"}), "refused");
    EXPECT_TRUE(says("refused", "CREATE SCHEMA IF NOT EXISTS")) << said("refused");
    refused.signal(SIGKILL);
    EXPECT_TRUE(refused.wait(std::chrono::seconds{10}));
}

}  // namespace
}  // namespace millrace::cli
