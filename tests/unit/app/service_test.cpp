#include "service.hpp"

#include "admin_server.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

relay_status leading(const std::string& outbox) {
    relay_status s;
    s.address = outbox;
    s.leading = true;
    s.ready = true;
    s.epoch = epoch{7};
    s.deleted = 12;
    s.outbox = outbox_look{
        .backlog = 30,
        .oldest_age = 1500ms,
        .holders = {{.pid = 4711, .transaction_age = 90s, .query_age = 2s}, {.pid = 4712}}};
    return s;
}

std::string get(const service& about, std::string_view path) {
    return answer_admin(path, about).body;
}

TEST(Service, OneOutboxHasPlainMetrics) {
    service about(service::kind::relay);
    const auto s = leading("sqlite:shop.db");
    about.update(s, {s});
    EXPECT_THAT(
        get(about, "/metrics"),
        AllOf(
            HasSubstr("millrace_relay_leading 1\n"),
            HasSubstr("millrace_relay_epoch 7\n"),
            HasSubstr("millrace_relay_backlog 30\n"),
            HasSubstr("millrace_relay_oldest_age_seconds 1.5\n"),
            HasSubstr("# TYPE millrace_relay_deleted_total counter\nmillrace_relay_deleted_total 12\n"),
            HasSubstr("millrace_ready 1\n")
        )
    );
}

TEST(Service, WhoHoldsTheLowWaterMarkIsNamedWithWhatMayBeSeenOfIt) {
    service about(service::kind::relay);
    const auto s = leading("sqlite:shop.db");
    about.update(s, {s});
    EXPECT_THAT(
        get(about, "/metrics"),
        AllOf(
            HasSubstr("millrace_relay_low_water_holders 2\n"),
            HasSubstr("millrace_relay_low_water_holder_seconds{pid=\"4711\"} 90\n"),
            HasSubstr("millrace_relay_low_water_holder_query_seconds{pid=\"4711\"} 2\n"),
            Not(HasSubstr("4712"))
        )
    );
    EXPECT_THAT(
        get(about, "/status"),
        HasSubstr(R"("holders":[{"pid":4711,"transaction_age_s":90.000,"query_age_s":2.000},)"
                  R"({"pid":4712,"transaction_age_s":null,"query_age_s":null}])")
    );
}

TEST(Service, SeveralOutboxesAreToldApart) {
    service about(service::kind::relay);
    auto sum = leading("");
    sum.deleted = 24;
    about.update(sum, {leading("sqlite:a.db"), leading("sqlite:b.db")});
    EXPECT_THAT(
        get(about, "/metrics"),
        AllOf(
            HasSubstr("millrace_relay_deleted_total{outbox=\"sqlite:a.db\"} 12\n"),
            HasSubstr("millrace_relay_deleted_total{outbox=\"sqlite:b.db\"} 12\n"),
            HasSubstr("holder_seconds{outbox=\"sqlite:b.db\",pid=\"4711\"} 90\n")
        )
    );
    EXPECT_THAT(
        get(about, "/status"),
        AllOf(
            HasSubstr("\"relay_deleted_total\":24,"),
            HasSubstr("\"outboxes\":[{\"outbox\":\"sqlite:a.db\",\"leading\":1,"),
            HasSubstr("{\"outbox\":\"sqlite:b.db\",")
        )
    );
}

TEST(Service, WhatIsUnknownIsLeftOutOfMetricsAndNullInStatus) {
    service about(service::kind::relay);
    relay_status s;
    about.update(s, {s});
    EXPECT_THAT(get(about, "/metrics"), Not(HasSubstr("backlog")));
    EXPECT_THAT(
        get(about, "/status"), AllOf(HasSubstr("\"relay_backlog\":null"), HasSubstr("\"holders\":null"))
    );
}

TEST(Service, AnOutboxThatIsNotReadySaysWhy) {
    service about(service::kind::relay);
    EXPECT_EQ(answer_admin("/readyz", about).status, 503u);
    EXPECT_THAT(get(about, "/readyz"), HasSubstr("nothing has been heard"));
    auto bad = leading("sqlite:b.db");
    bad.ready = false;
    bad.not_ready = "the sink has not answered for 7 s";
    bad.last_error = error{errc::not_found, retry_advice::after_delay, false, "there is no table outbox"};
    about.update(bad, {leading("sqlite:a.db"), bad});
    EXPECT_EQ(answer_admin("/readyz", about).status, 503u);
    EXPECT_EQ(get(about, "/readyz"), "not ready: sqlite:b.db: there is no table outbox\n");
    EXPECT_THAT(get(about, "/status"), HasSubstr(R"("last_error":"not_found: there is no table outbox")"));
    EXPECT_EQ(answer_admin("/healthz", about).status, 200u) << "the process turns";
    about.update(bad, {leading("sqlite:a.db"), leading("sqlite:b.db")});
    EXPECT_EQ(answer_admin("/readyz", about).status, 200u);
}

TEST(Service, SchemasOfAllOutboxesAreToldOnce) {
    service about(service::kind::relay);
    auto s = leading("sqlite:shop.db");
    about.update(s, {s});
    EXPECT_THAT(get(about, "/metrics"), Not(HasSubstr("millrace_schema_")));
    EXPECT_THAT(get(about, "/status"), Not(HasSubstr("schemas")));
    s.awaiting = 3;
    s.schemas = schema_status{
        .requests = 9,
        .answers = 4,
        .failed = {{"unreachable", 2}, {"no_such_subject", 0}},
        .cached = 5,
        .cached_bytes = 600,
        .trouble = "the \"registry\" is away"};
    about.update(s, {s, leading("sqlite:other.db")});
    EXPECT_THAT(
        get(about, "/metrics"),
        AllOf(
            HasSubstr("millrace_relay_awaiting{outbox=\"sqlite:shop.db\"} 3\n"),
            HasSubstr("millrace_schema_requests_total 9\n"),
            HasSubstr("millrace_schema_failures_total{kind=\"unreachable\"} 2\n"),
            HasSubstr("millrace_schema_failures_total{kind=\"no_such_subject\"} 0\n"),
            HasSubstr("millrace_schema_cached_bytes 600\n"),
            HasSubstr("millrace_schema_trouble 1\n")
        )
    );
    EXPECT_THAT(
        get(about, "/status"),
        AllOf(
            HasSubstr(R"("awaiting":3)"),
            HasSubstr(R"("failures":{"unreachable":2,"no_such_subject":0},"why":"the \"registry\" is away")")
        )
    );
}

TEST(Service, ALoopThatStandsStillIsNeitherHealthyNorReadyNorLeading) {
    mono_time now{};
    service about(service::kind::relay, service::silence_limit(7s), [&] { return now; });
    const auto s = leading("sqlite:shop.db");
    about.update(s, {s});
    now += 7s;
    EXPECT_EQ(answer_admin("/healthz", about).status, 200u);
    EXPECT_EQ(answer_admin("/readyz", about).status, 200u);
    EXPECT_THAT(get(about, "/metrics"), HasSubstr("millrace_relay_leading 1\n"));
    now += 1s;
    EXPECT_EQ(answer_admin("/healthz", about).status, 503u);
    EXPECT_THAT(get(about, "/healthz"), HasSubstr("not healthy: the loop has stood still for 8 s"));
    EXPECT_EQ(answer_admin("/readyz", about).status, 503u);
    EXPECT_THAT(
        get(about, "/metrics"),
        AllOf(HasSubstr("millrace_relay_leading 0\n"), HasSubstr("millrace_ready 0\n"))
    );
    EXPECT_THAT(
        get(about, "/status"),
        AllOf(
            HasSubstr("\"relay_leading\":0,"),
            HasSubstr("\"leading\":0,"),
            HasSubstr("\"ready\":0,"),
            Not(HasSubstr("\"ready\":1"))
        )
    );
    about.update(s, {s});
    EXPECT_EQ(answer_admin("/healthz", about).status, 200u);
    EXPECT_THAT(get(about, "/metrics"), HasSubstr("millrace_relay_leading 1\n"));
}

TEST(Service, AConsumerWhoseLoopStandsStillIsNotHealthyEvenBeforeItHasBegun) {
    mono_time now{};
    service about(service::kind::consumer, service::silence_limit(1s), [&] { return now; });
    now += 5s;
    EXPECT_EQ(answer_admin("/healthz", about).status, 200u) << "five seconds, however short the lease";
    now += 1ms;
    EXPECT_EQ(answer_admin("/healthz", about).status, 503u);
    about.update(consumer_status{});
    EXPECT_EQ(answer_admin("/healthz", about).status, 200u);
    EXPECT_EQ(answer_admin("/readyz", about).status, 503u) << "it has not seen its group";
}

TEST(Service, DroppedLogLinesAreCounted) {
    service about(service::kind::relay);
    EXPECT_THAT(get(about, "/metrics"), Not(HasSubstr("millrace_log_lines_dropped_total")));
    about.count_dropped_lines([] { return 12U; });
    EXPECT_THAT(get(about, "/metrics"), HasSubstr("\nmillrace_log_lines_dropped_total 12\n"));
}

TEST(Service, AConsumerIsReadyOnceItHasSeenItsGroup) {
    service about(service::kind::consumer);
    about.update(consumer_status{});
    EXPECT_EQ(answer_admin("/readyz", about).status, 503u);
    consumer_status s;
    s.total = 2;
    s.records_read = 9;
    about.update(s);
    EXPECT_EQ(answer_admin("/readyz", about).status, 200u);
    EXPECT_THAT(get(about, "/metrics"), HasSubstr("millrace_consumer_records_read_total 9\n"));
    EXPECT_THAT(get(about, "/status"), HasSubstr("\"consumer_records_read_total\":9,"));
}

TEST(Service, AConsumerTellsOfEachShardWhatIsToBeWatched) {
    service about(service::kind::consumer);
    consumer_status s;
    s.total = 1;
    s.blocked = 90s;
    s.retention_left = 3600s;
    s.aggregates = 7;
    s.handler_time = 1500ms;
    s.progress = {
        {.shard = shard_id("shard-1"),
         .epoch = epoch{4},
         .reads = 10,
         .reads_throttled = 2,
         .records_read = 300,
         .blocked = 90s,
         .retention_left = 3600s},
        {.shard = shard_id("shard-2"), .reads_failed = 3, .behind = 2500ms, .failing = 1500ms}};
    about.update(s);
    EXPECT_THAT(
        get(about, "/metrics"),
        AllOf(
            HasSubstr("millrace_consumer_aggregates_total 7\n"),
            HasSubstr("millrace_consumer_handler_seconds_total 1.5\n"),
            HasSubstr("millrace_consumer_blocked_seconds 90\n"),
            HasSubstr("millrace_consumer_retention_left_seconds 3600\n"),
            HasSubstr("millrace_shard_epoch{shard=\"shard-1\"} 4\n"),
            HasSubstr("millrace_shard_reads_throttled_total{shard=\"shard-1\"} 2\n"),
            HasSubstr("millrace_shard_blocked_seconds{shard=\"shard-1\"} 90\n"),
            HasSubstr("millrace_shard_retention_left_seconds{shard=\"shard-1\"} 3600\n"),
            HasSubstr("millrace_shard_behind_seconds{shard=\"shard-2\"} 2.5\n"),
            HasSubstr("millrace_shard_read_failing_seconds{shard=\"shard-2\"} 1.5\n"),
            HasSubstr("millrace_shard_read_failures_total{shard=\"shard-2\"} 3\n"),
            Not(HasSubstr("retention_left_seconds{shard=\"shard-2\"}"))
        )
    );
    EXPECT_THAT(
        get(about, "/status"),
        AllOf(
            HasSubstr(R"("shards":[{"shard":"shard-1","epoch":4,"reads_total":10,)"),
            HasSubstr(R"("retention_left_seconds":null}]})")
        )
    );
}

TEST(Service, AConsumerWhoseStreamOrStateIsAwaySaysSo) {
    service about(service::kind::consumer);
    consumer_status s;
    s.trouble = error{errc::not_found, retry_advice::after_delay, false, "there is no stream orders"};
    about.update(s);
    EXPECT_EQ(answer_admin("/readyz", about).status, 503u);
    EXPECT_EQ(get(about, "/readyz"), "not ready: there is no stream orders\n") << "before any listing, too";
    EXPECT_THAT(get(about, "/metrics"), HasSubstr("millrace_ready 0\n"));
    EXPECT_THAT(
        get(about, "/status"), HasSubstr(R"("consumer_last_error":"not_found: there is no stream orders")")
    );
    s.total = 1;
    about.update(s);
    EXPECT_EQ(answer_admin("/readyz", about).status, 503u);
    s.trouble.reset();
    about.update(s);
    EXPECT_EQ(answer_admin("/readyz", about).status, 200u);
    EXPECT_THAT(get(about, "/status"), HasSubstr(R"("consumer_last_error":null)"));
}

}  // namespace
}  // namespace millrace::app
