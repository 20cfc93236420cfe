// Promise 7 with schemas: many subjects are held within the limits of the cache, and are asked for once.

#include "local_admin.hpp"
#include "support/process.hpp"
#include "support/raw_http_server.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::e2e {
namespace {

using testing::HasSubstr;

constexpr int subjects = 10'000;
constexpr std::int64_t kib_of_a_mb = 1'000'000 / 1024;

/// The number in `/subjects/t00042-value/versions/latest`.
int number_in(const std::string& target) {
    const auto at = target.find("/t");
    return at == std::string::npos ? 0 : std::stoi(target.substr(at + 2, 5));
}

/// A record of 12 fields that no other subject has, as a reply in JSON.
std::string reply_for(int number) {
    const auto schema = fmt::format(
        R"({{"type":"record","name":"Order{0}","namespace":"shop","fields":[)"
        R"({{"name":"id","type":"long"}},{{"name":"customer","type":"string"}},{{"name":"email","type":"string"}},)"
        R"({{"name":"status","type":{{"type":"enum","name":"Status{0}","symbols":["NEW","PAID","SENT"]}}}},)"
        R"({{"name":"quantity","type":"int"}},{{"name":"weight","type":"double"}},)"
        R"({{"name":"total","type":{{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}}}},)"
        R"({{"name":"placed_at","type":{{"type":"long","logicalType":"timestamp-millis"}}}},)"
        R"({{"name":"paid","type":"boolean"}},{{"name":"country","type":"string"}},)"
        R"({{"name":"coupon","type":["null","string"]}},{{"name":"note","type":"string"}}]}})",
        number
    );
    std::string quoted;
    for (const char c : schema)
        quoted += c == '"' ? std::string("\\\"") : std::string(1, c);
    return fmt::format(
        R"({{"subject":"t{:05}-value","id":{},"version":1,"schema":"{}"}})", number, number + 1, quoted
    );
}

std::string row_for(int number) {
    return fmt::format(
        R"({{"topic":"t{:05}","key":"k","value":{{"id":{},"customer":"c","email":"c@shop.example","status":"PAID",)"
        R"("quantity":3,"weight":0.5,"total":"12.34","placed_at":"2026-11-30T10:15:30Z","paid":true,)"
        R"("country":"DE","coupon":null,"note":"none"}}}})"
        "\n",
        number,
        number
    );
}

TEST(SchemasMemory, TenThousandSubjectsStayWithinTheBudgetsAndAreAskedForOnce) {
    support::raw_http_server registry{[](const support::seen_request& request) {
        return support::raw_answer{support::http_answer(
            200,
            reply_for(number_in(request.target)),
            "Content-Type: application/vnd.schemaregistry.v1+json\r\n"
        )};
    }};
    const support::temporary_folder folder;
    const auto outbox = "sqlite:" + folder.file("outbox.db");
    std::ofstream{folder.file("millrace.yaml")} << fmt::format(
        "schemas:\n  registry: {}\n  rules:\n    - topic: t*\n      value: avro\n", registry.url()
    );
    const auto made = support::run({MILLRACE_PROGRAM, "outbox", "init", "--outbox", outbox});
    ASSERT_EQ(made.status, 0) << made.errors;
    std::string rows;
    for (int number = 0; number < 2 * subjects; ++number)
        rows += row_for(number % subjects);
    const auto put = support::run(
        {MILLRACE_PROGRAM, "outbox", "put", "--outbox", outbox}, rows, std::chrono::seconds{120}
    );
    ASSERT_EQ(put.status, 0) << put.errors;

    const auto run = [&](std::vector<std::string> command, std::int64_t mb_max) {
        command.insert(command.end(), {"--outbox", outbox, "--config", folder.file("millrace.yaml")});
        support::process program{
            command,
            {.input = {},
             .output = folder.file("output"),
             .errors = folder.file("output"),
             .environment = {}}};
        const auto ended = program.wait(std::chrono::minutes{5});
        EXPECT_TRUE(ended && ended->status == 0) << support::read_file(folder.file("output")).substr(0, 2000);
        const auto peak = ended ? ended->peak_memory_kib : 0;
        std::printf("%s: %ld KiB at its peak\n", command[1].c_str(), static_cast<long>(peak));
        EXPECT_LE(peak, mb_max * kib_of_a_mb);
    };
    run({MILLRACE_PROGRAM, "outbox", "check", "--wait", "5m"}, 64);
    EXPECT_THAT(
        support::read_file(folder.file("output")),
        HasSubstr("20000 fit the rules, 0 would be parked, 0 would wait")
    );
    EXPECT_EQ(registry.requests(), std::size_t{subjects});

    const auto streams = folder.file("streams.db");
    {
        auto admin = local_admin::open_or_create(streams);
        ASSERT_TRUE(admin) << admin.error().detail;
        for (int number = 0; number < subjects; ++number)
            ASSERT_TRUE(admin->create_stream(fmt::format("t{:05}", number), 1));
    }
    run({MILLRACE_PROGRAM, "relay", "--sink", "local:" + streams, "--once"},
        88);  // what a relay needs anyway is in it
    EXPECT_THAT(support::read_file(folder.file("output")), HasSubstr("delivered 20000 events"));
    EXPECT_EQ(registry.requests(), std::size_t{2 * subjects});
}

}  // namespace
}  // namespace millrace::e2e
