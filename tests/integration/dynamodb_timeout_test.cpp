// A service of leases that takes requests and never answers.
#include "adapters.hpp"
#include "event_loop.hpp"
#include "support/raw_http_server.hpp"

#include <chrono>
#include <cstdlib>
#include <optional>

#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

clock::duration request_takes(nanoseconds lease) {
    ::setenv("AWS_ACCESS_KEY_ID", "key", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    support::raw_http_server server([](const support::seen_request&) {
        return support::raw_answer{"", 60s};
    });
    const auto where =
        parse_url("dynamodb://eu-west-1/leases?endpoint=" + server.url(), url_role::state).value();
    event_loop loop;
    const auto store = open_lease_store(where, {"orders", "billing"}, loop, {.lease = lease}).value();
    const auto begun = clock::now();
    std::optional<result<std::vector<worker_row>>> outcome;
    store->list_workers([&](result<std::vector<worker_row>> how) {
        outcome = std::move(how);
        loop.stop();
    });
    loop.run();
    EXPECT_FALSE(*outcome);
    return clock::now() - begun;
}

TEST(DynamodbTimeout, ARequestEndsLongBeforeAShortLease) {
    EXPECT_LT(request_takes(1s), 900ms);
}

TEST(DynamodbTimeout, OfALongLeaseItIsTwoSeconds) {
    const auto took = request_takes(1min);
    EXPECT_GT(took, 1900ms);
    EXPECT_LT(took, 6s);
}

}  // namespace
}  // namespace millrace::test
