#include <millrace/options.hpp>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(GroupOptions, TheDefaultsAreValidAndEachLimitIsNamed) {
    EXPECT_TRUE(group_options{}.validate());
    const auto refusal = [](auto change) {
        group_options options;
        change(options);
        const auto valid = options.validate();
        return valid ? std::string("accepted") : valid.error().detail;
    };
    EXPECT_NE(refusal([](auto& o) { o.tick = 501ms; }).find("tick is 0.501"), std::string::npos);
    EXPECT_EQ(
        refusal([](auto& o) { o.shard_list_every = nanoseconds::max(); }),
        "group option shard_list_every is 9223372036.854776 s; it must be at most 365 days"
    );
    EXPECT_EQ(refusal([](auto& o) { o.tidy_after = std::chrono::hours{24 * 365}; }), "accepted");
    EXPECT_NE(refusal([](auto& o) { o.drain_limit = -1s; }).find("drain_limit"), std::string::npos);
    EXPECT_NE(
        refusal([](auto& o) { o.checkpoint_records = 0; }).find("checkpoint_records"), std::string::npos
    );
    EXPECT_NE(
        refusal([](auto& o) { o.start = start_policy::at_timestamp; }).find("start_at"), std::string::npos
    );
}

}  // namespace
}  // namespace millrace
