#include "shard/options.hpp"

#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string complaint(const std::function<void(shard_options&)>& change) {
    shard_options options;
    change(options);
    const auto checked = options.validate();
    return checked ? "" : checked.error().detail;
}

TEST(ShardOptions, TheDefaultsAreValid) {
    EXPECT_EQ(complaint([](auto&) {}), "");
}

TEST(ShardOptions, AWrongValueIsNamedWithBothValues) {
    EXPECT_EQ(complaint([](auto& o) { o.batch_records = 0; }), "batch_records is 0; it must be at least 1");
    EXPECT_EQ(
        complaint([](auto& o) { o.reads_in_flight = 0; }), "reads_in_flight is 0; it must be at least 1"
    );
    EXPECT_EQ(
        complaint([](auto& o) { o.retry_max = 50ms; }),
        "retry_max is 0.05 s, below retry_min, which is 0.1 s; make it at least as long"
    );
    EXPECT_EQ(
        complaint([](auto& o) { o.tip_interval = nanoseconds::max(); }),
        "tip_interval is 9223372036.854776 s; it must be at most 365 days"
    );
    EXPECT_EQ(complaint([](auto& o) { o.tip_interval = 0s; }), "tip_interval is 0 s; it must be above 0");
    EXPECT_EQ(
        complaint([](auto& o) { o.read_interval = -1s; }), "read_interval is -1 s; it must not be below 0"
    );
    EXPECT_EQ(
        complaint([](auto& o) { o.memory_bytes = 100; }),
        "read_bytes is 1048576, above memory_bytes, which is 100; a read must fit the memory"
    );
}

}  // namespace
}  // namespace millrace
