// Rows that are odd or broken: the odd ones arrive as they are, the broken ones are put away with a reason,
// and neither holds up the others.
#include "cli_fixture.hpp"

namespace millrace::cli {
namespace {

struct CliRows : Cli {
    void SetUp() override {
        make_outbox();
        make_stream();
    }
    void sql(const std::string& database, const std::string& script) const {
        const auto done = shell("sqlite3 " + database + " \"" + script + "\"");
        ASSERT_EQ(done.status, 0) << done.errors;
    }
    void insert(const std::string& rows) const {
        sql("shop.db", "INSERT INTO outbox (topic, key, value, headers) VALUES " + rows);
    }
    [[nodiscard]] std::string dead() const {
        return ok({"outbox", "dead", "list", "--outbox", outbox(), "--json"});
    }
    /// The values of what a consumer of its own group prints, in order.
    [[nodiscard]] std::vector<std::string> values(const std::string& output) const {
        std::vector<std::string> found;
        const std::string mark = "\"data\":\"";
        for (std::size_t at = 0; (at = output.find(mark, at)) != std::string::npos; at += mark.size())
            found.push_back(
                output.substr(at + mark.size(), output.find('"', at + mark.size()) - at - mark.size())
            );
        return found;
    }
};

TEST_F(CliRows, OfSeveralOutboxesTheOneWithTheParkedRowIsNamed) {
    const std::string bad = "sqlite:" + path("bad.db");
    ok({"outbox", "init", "--outbox", bad});
    sql("bad.db", "INSERT INTO outbox (topic, key, value, headers) VALUES ('orders','k','1','no json')");
    insert("('orders','a','1',NULL)");
    words command = relay_once();
    command.insert(command.end(), {"--outbox", bad, "--json"});
    const auto done = millrace(command);
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(
        done.errors,
        testing::EndsWith(
            "millrace: 1 row of " + bad + " was parked (id 1); see millrace outbox dead list --outbox '" +
            bad + "'\n"
        )
    );
    EXPECT_THAT(
        done.output,
        AllOf(
            HasSubstr(R"({"outbox":")" + outbox() + R"(","delivered":1,"parked":0,"retried":0})"),
            HasSubstr(R"({"outbox":")" + bad + R"(","delivered":0,"parked":1,"retried":0})")
        )
    );
}

TEST_F(CliRows, BrokenHeadersArePutAwayWithTheirReasonAndTheOthersDelivered) {
    insert(
        "('orders','a','1',NULL),('orders','b','2','no json'),('orders','c','3','{}'),"
        "('orders','d','4','[[1,2]]'),('orders','e','5',x'ff00'),('orders','b','6',NULL),('','f','7',NULL),"
        "('orders','g','8','[]')"
    );
    const auto done = millrace(relay_once());
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(
        done.errors, AllOf(HasSubstr(outbox()), HasSubstr("were parked (ids "), HasSubstr("outbox dead list"))
    );
    const std::string list = dead();
    EXPECT_THAT(
        list,
        HasSubstr(
            R"("id":2,"topic":"orders","key":"b","reason":"malformed_row","error":"the headers are not JSON in UTF-8")"
        )
    );
    EXPECT_THAT(
        list,
        HasSubstr(
            R"("id":3,"topic":"orders","key":"c","reason":"malformed_row","error":"the headers are no JSON array")"
        )
    );
    EXPECT_THAT(
        list,
        HasSubstr(
            R"("id":4,"topic":"orders","key":"d","reason":"malformed_row","error":"header 1 is no pair of a name and a value")"
        )
    );
    EXPECT_THAT(list, HasSubstr(R"("id":5,"topic":"orders","key":"e","reason":"malformed_row")"));
    EXPECT_THAT(list, HasSubstr(R"("id":6,"topic":"orders","key":"b","reason":"lane_is_parked")"))
        << "the key keeps its order";
    EXPECT_THAT(
        list,
        HasSubstr(R"("id":7,"topic":"","key":"f","reason":"malformed_row","error":"the topic is empty")")
    );
    EXPECT_THAT(values(ok(consume())), testing::ElementsAre("1", "8"));
}

TEST_F(CliRows, BrokenHeadersAreShownAsTheyAreStored) {
    insert("('orders','b','2','no json'),('orders','e','5',x'ff00')");
    EXPECT_EQ(millrace(relay_once()).status, 1);
    const std::string shown = ok({"outbox", "dead", "show", "--outbox", outbox(), "1", "2"});
    EXPECT_THAT(
        shown,
        AllOf(
            HasSubstr(R"("headers":null,"broken_headers":"the headers are not JSON in UTF-8")"),
            HasSubstr(R"("headers_base64":"bm8ganNvbg=="})"),
            HasSubstr(R"("headers_base64":"/wA="})")
        )
    );
}

TEST_F(CliRows, EmptyHugeAndBinaryKeysArriveByteForByteAndInOrder) {
    insert(
        "('orders','','1',NULL),('orders',x'00ff','2',NULL),('orders',zeroblob(5000),'3',NULL),"
        "('orders',NULL,'4',NULL),('orders','','5',NULL),('orders',x'00ff','6',NULL),('orders',5,'7',NULL)"
    );
    ok(relay_once());
    const std::string out = ok(consume());
    EXPECT_THAT(values(out), testing::ElementsAre("1", "2", "3", "4", "5", "6", "7"));
    EXPECT_THAT(out, HasSubstr(R"("key":"","data":"1")"));
    EXPECT_THAT(out, HasSubstr(R"("key_base64":"AP8=","data":"2")"));
    EXPECT_THAT(out, HasSubstr(R"("key":null,"data":"4")"));
    std::string zeros;
    for (int i = 0; i < 5000; ++i)
        zeros += "\\u0000";
    EXPECT_THAT(out, HasSubstr("\"key\":\"" + zeros + "\",\"data\":\"3\""));
}

TEST_F(CliRows, AnOversizeValueMeetsThePolicyAndTheOthersAreDelivered) {
    insert("('orders','a','1',NULL),('orders','b',zeroblob(11000000),NULL),('orders','c','3',NULL)");
    EXPECT_EQ(millrace(relay_once()).status, 1);
    EXPECT_THAT(
        dead(),
        AllOf(
            HasSubstr("\"id\":2"),
            HasSubstr("the value has 11000000 bytes and a local stream takes at most 10485760; store it "
                      "elsewhere and send a reference")
        )
    );
    EXPECT_THAT(values(ok(consume())), testing::ElementsAre("1", "3"));

    insert("('orders','d',zeroblob(11000000),NULL)");
    words command = relay_once();
    command.insert(command.end(), {"--on-poison", "stop"});
    const auto stopped = millrace(command);
    EXPECT_EQ(stopped.status, 1);
    EXPECT_THAT(stopped.errors, HasSubstr("11000000 bytes"));
    EXPECT_THAT(ok({"outbox", "stats", "--outbox", outbox(), "--json"}), HasSubstr("\"backlog\":1"))
        << "it stays";
}

TEST_F(CliRows, ATopicThatNoStreamCanBearIsNotAdvisedToBeCreated) {
    insert("('bad topic/\u00fc','k','1',NULL)");
    EXPECT_EQ(millrace(relay_once()).status, 1);
    EXPECT_THAT(
        dead(),
        AllOf(
            HasSubstr("can hold no such stream: stream name "),
            testing::Not(HasSubstr("millrace stream create"))
        )
    );
}

TEST_F(CliRows, ATopicWithoutAStreamHoldsUpItsOwnRowsOnlyWithAdviceAndArrivesInOrderOnceThereIsOne) {
    std::string rows = "('orders','k','other',NULL),";
    for (int i = 0; i < 20; ++i)
        rows += std::string(i > 0 ? "," : "") + "('bills','k" + std::to_string(i % 3) + "','" +
                std::to_string(i) + "',NULL)";
    insert(rows);
    words command = relay_once();
    command.insert(command.end(), {"--yield-after", "1s"});
    const auto waits = millrace(command);
    EXPECT_EQ(waits.status, 1);
    EXPECT_THAT(
        waits.errors,
        AllOf(HasSubstr(" does not exist in " + sink()), HasSubstr("create it with `millrace stream create`"))
    );
    EXPECT_THAT(
        ok({"outbox", "stats", "--outbox", outbox(), "--json"}),
        AllOf(HasSubstr("\"backlog\":20"), HasSubstr("\"dead\":0"))
    );
    ok({"stream", "create", "--stream", stream("bills"), "--shards", "1"});
    ok(relay_once());
    const auto got = values(
        ok({"consume",
            "--stream",
            stream("bills"),
            "--group",
            "g",
            "--state",
            state(),
            "--print",
            "--idle-exit",
            "0.2",
            "--log-level",
            "warning"})
    );
    ASSERT_EQ(got.size(), 20U);
    for (int i = 0; i < 20; ++i)
        EXPECT_EQ(got[static_cast<std::size_t>(i)], std::to_string(i));
}

TEST_F(CliRows, FilesOfANewerVersionAreLeftAlone) {
    ok(consume());
    sql("shop.db", "UPDATE outbox_meta SET schema_version = 99");
    sql("streams.db", "UPDATE millrace_stream_format SET version = 99");
    const auto refused = [&](const words& command, const std::string& file, const std::string& advice) {
        const auto done = millrace(command);
        EXPECT_EQ(done.status, 1) << done.errors;
        EXPECT_THAT(done.errors, AllOf(HasSubstr(file), HasSubstr("99"), HasSubstr(advice)));
    };
    refused(relay_once(), outbox(), "use the newer program");
    refused({"outbox", "stats", "--outbox", outbox()}, outbox(), "use the newer program");
    refused({"outbox", "init", "--outbox", outbox()}, outbox(), "use the newer program");
    refused(consume(), sink(), "use the version of millrace that wrote them");
    refused(
        {"stream", "describe", "--stream", stream()}, sink(), "use the version of millrace that wrote them"
    );
    refused({"stream", "put", "--stream", stream(), "--value", "v"}, sink(), "use the version of millrace");
}

TEST_F(CliRows, AnOutputThatTakesNothingEndsWithOneAndAcknowledgesNothing) {
    ok({"stream", "put", "--stream", stream(), "--key", "k", "--value", "v"});
    for (const std::string where : {">/dev/full", ">&-"}) {
        const auto done = shell(
            "$M consume --stream " + stream() + " --group g --state " + state() +
            " --print --idle-exit 0.2 " + where
        );
        EXPECT_EQ(done.status, 1) << where;
        EXPECT_THAT(done.errors, HasSubstr("standard output cannot be written: ")) << where;
        EXPECT_EQ(shell("$M outbox stats --outbox " + outbox() + ' ' + where).status, 1) << where;
    }
    EXPECT_THAT(values(ok(consume())), testing::ElementsAre("v"));
}

TEST_F(CliRows, MessagesThatCannotBeWrittenChangeNoExitStatus) {
    for (const std::string where : {"2>/dev/full", "2>&-", ">&- 2>&-"}) {
        EXPECT_EQ(shell("$M outbox stats --outbox sqlite:none.db " + where).status, 1) << where;
        EXPECT_EQ(shell("$M relay --nothing " + where).status, 2) << where;
    }
    EXPECT_EQ(shell("$M relay --once --outbox " + outbox() + " --sink " + sink() + " 2>/dev/full").status, 0);
}

TEST_F(Cli, WhatIsNoDatabaseIsNamedAsSuchAndNotAsAChange) {
    write("notes.txt", std::string(200, 'x'));
    const auto refused = millrace({"outbox", "stats", "--outbox", "sqlite:" + path("notes.txt")});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.errors, HasSubstr("it is not a SQLite database"));
    EXPECT_THAT(refused.errors, testing::Not(HasSubstr("cannot change")));
}

TEST_F(Cli, OnceNamesTheRowsThatItLeavesBecauseNoBrokerIsThere) {
    make_outbox();
    for (int i = 0; i < 25; ++i)
        ok({"outbox", "put", "--outbox", outbox(), "--topic", "orders", "--key", "k", "--value", "v"});
    const auto done = millrace(
        {"relay", "--outbox", outbox(), "--sink", "kafka://127.0.0.1:1", "--once", "--yield-after", "1s"}
    );
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.errors, HasSubstr("(ids 1, 2, 3, 4, "));
    EXPECT_THAT(done.errors, HasSubstr("20 and 5 more)"));
    EXPECT_THAT(done.errors, HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace millrace::cli
