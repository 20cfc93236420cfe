#include "group_view.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::app {
namespace {

/// The column of the shards, without what stands behind.
std::vector<std::string> tree(const std::vector<shard_line>& shards) {
    group_view view;
    view.shards = shards;
    const auto text = to_table(view);
    std::vector<std::string> lines;
    for (auto at = text.find("shard "); at < text.size();) {
        const auto end = text.find('\n', at);
        const auto line = text.substr(at, end - at);
        const auto name = line.find_first_not_of(' ');
        lines.push_back(line.substr(0, line.find(' ', name)));
        at = end + 1;
    }
    lines.erase(lines.begin());
    return lines;
}

shard_line line(const std::string& name, std::vector<shard_id> parents = {}) {
    return {
        .shard = name,
        .state = "free",
        .owner = {},
        .checkpoint = {},
        .parents = std::move(parents),
        .lag_max = {}};
}

TEST(GroupView, ShowsChildrenBelowTheirParents) {
    EXPECT_THAT(
        tree(
            {line("a"),
             line("b"),
             line("a1", {shard_id("a")}),
             line("a2", {shard_id("a")}),
             line("a11", {shard_id("a1")})}
        ),
        testing::ElementsAre("a", "  a1", "    a11", "  a2", "b")
    );
}

TEST(GroupView, ShowsAMergedShardOnceBelowTheLastOfItsParents) {
    EXPECT_THAT(
        tree({line("m", {shard_id("a"), shard_id("b")}), line("a"), line("b"), line("c", {shard_id("gone")})}
        ),
        testing::ElementsAre("a", "b", "  m", "c")
    );
}

TEST(GroupView, ShowsEveryShardOfACircleToo) {
    EXPECT_THAT(
        tree({line("a", {shard_id("b")}), line("b", {shard_id("a")}), line("c", {shard_id("b")}), line("d")}),
        testing::UnorderedElementsAre("d", "a", "b", "c")
    );
}

TEST(GroupView, ShowsHowLongWhatFollowsTheCheckpointMayHaveWaited) {
    shard_row done;
    done.shard = shard_id("done");
    done.checkpoint = checkpoint{{sequence_number{7}, 0}, wall_time{milliseconds{1'000}}};
    auto behind = done;
    behind.shard = shard_id("behind");
    done.finished_at = wall_time{milliseconds{2'000}};
    const std::vector<listed_shard> listed{
        {shard_id("done"), {}, true, "", ""}, {shard_id("behind"), {}, false, "", ""}};
    const auto view = view_group(
        listed,
        {},
        {done, behind},
        wall_time{milliseconds{99'000}},
        wall_time{milliseconds{61'000}},
        [](const process_identity&) { return false; }
    );
    EXPECT_FALSE(view.shards[0].lag_max);
    EXPECT_EQ(view.shards[1].lag_max, milliseconds{60'000}) << "by the stream's clock";
    EXPECT_THAT(to_json(view), testing::HasSubstr(R"("lag_ms_max":60000)"));
}

TEST(GroupView, AWorkerWhoseRowIsUnreadableIsShownAsNotLiveAndWhy) {
    worker_row row{.incarnation = incarnation{"s"}, .lease = std::chrono::seconds{10}};
    row.unreadable = "column counter of worker \"\" is damaged";
    const auto view =
        view_group({}, {row}, {}, wall_time{}, wall_time{}, [](const process_identity&) { return false; });
    ASSERT_EQ(view.workers.size(), 1U);
    EXPECT_EQ(view.workers[0].worker, "(unreadable)");
    EXPECT_FALSE(view.workers[0].live);
    EXPECT_THAT(view.problems, testing::ElementsAre(row.unreadable));
}

TEST(GroupView, AShardWhoseRowIsUnreadableIsShownAsThatAndWhy) {
    const error why{
        errc::corrupt, retry_advice::after_delay, false, "column epoch of shard \"a\" is damaged"};
    const auto view = view_group(
        {{shard_id("a"), {}, false, "", ""}, {shard_id("b"), {}, false, "", ""}},
        {},
        {unreadable_row(shard_id("a"), why)},
        wall_time{},
        wall_time{},
        [](const process_identity&) { return false; }
    );
    EXPECT_EQ(view.shards[0].state, "unreadable");
    EXPECT_EQ(view.shards[1].state, "free");
    EXPECT_THAT(view.problems, testing::ElementsAre(why.detail));
}

TEST(GroupView, ALongLineageIsShownWhole) {
    std::vector<shard_line> shards{line("s0")};
    for (int i = 1; i < 20'000; ++i)
        shards.push_back(line("s" + std::to_string(i), {shard_id("s" + std::to_string(i - 1))}));
    EXPECT_EQ(tree(shards).size(), 20'000U);
}

}  // namespace
}  // namespace millrace::app
