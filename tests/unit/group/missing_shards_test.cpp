#include "group/missing_shards.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;

lineage with(const std::vector<std::string>& gone) {
    lineage traced;
    traced.shards.push_back({.shard = shard_id{"here"}, .stage = shard_stage::ready, .listed = true});
    for (const auto& name : gone)
        traced.shards.push_back({.shard = shard_id{name}, .stage = shard_stage::gone, .has_row = true});
    return traced;
}

TEST(MissingShards, AreLookedForSoonAndThenLessAndLessOften) {
    missing_shards watch;
    EXPECT_EQ(watch.observe(with({}), mono_time{1s}, 30s), std::nullopt);
    EXPECT_EQ(watch.observe(with({"a"}), mono_time{2s}, 30s), 500ms);
    EXPECT_EQ(watch.observe(with({"a"}), mono_time{2s}, 30s), 500ms) << "the same listing says nothing new";
    for (const auto pause : {1s, 2s, 4s, 8s, 16s})
        EXPECT_EQ(watch.observe(with({"a"}), mono_time{3s} + pause, 30s), pause);
    EXPECT_EQ(watch.observe(with({"a"}), mono_time{60s}, 30s), std::nullopt);
    EXPECT_EQ(watch.observe(with({"a"}), mono_time{90s}, 30s), std::nullopt);
    EXPECT_EQ(watch.observe(with({"a", "b"}), mono_time{120s}, 30s), 500ms) << "another one";
}

TEST(MissingShards, AnEndedSearchBeginsAnew) {
    missing_shards watch;
    EXPECT_EQ(watch.observe(with({"a"}), mono_time{1s}, 30s), 500ms);
    EXPECT_EQ(watch.observe(with({"a"}), mono_time{2s}, 30s), 1s);
    EXPECT_EQ(watch.observe(with({}), mono_time{3s}, 30s), std::nullopt);
    EXPECT_EQ(watch.observe(with({"a"}), mono_time{4s}, 30s), 500ms);
}

}  // namespace
}  // namespace millrace
