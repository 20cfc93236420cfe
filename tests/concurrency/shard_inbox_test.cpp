#include "shard_inbox.hpp"

#include "event_loop.hpp"
#include "shard/ack_window.hpp"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(ShardInbox, AcknowledgementsOfManyThreadsAllReachTheLoopOnce) {
    constexpr std::size_t records = 40'000;
    constexpr std::size_t threads = 4;
    event_loop loop;
    auto batch = std::make_shared<record_batch>(shard_id{"s"});
    for (std::size_t i = 0; i < records; ++i)
        batch->add({.position = {sequence_number{i + 1}, 0}});
    ack_window window;  // touched by the loop alone
    window.push(batch);
    std::shared_ptr<shard_inbox> inbox;
    inbox = std::make_shared<shard_inbox>(loop, [&] {
        for (const auto& said : inbox->take())
            if (const auto* range = std::get_if<shard_inbox::acknowledged>(&said))
                window.acknowledge(range->first, range->last);
        if (window.size() == 0) loop.stop();
    });
    const auto acknowledge = make_acknowledger(inbox, records, 0, nullptr);
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t) {
        workers.emplace_back([acknowledge, t] {
            for (auto i = t; i < records; i += threads)
                acknowledge.one(i);
        });
    }
    loop.run();
    EXPECT_EQ(window.reached()->position.sequence, sequence_number{records});
    inbox->close();
}

TEST(ShardInbox, ClosedWhileThreadsStillReportItDropsWhatComes) {
    event_loop loop;
    const auto inbox = std::make_shared<shard_inbox>(loop, [&] { loop.stop(); });
    std::vector<std::jthread> workers;
    for (int t = 0; t < 3; ++t) {
        workers.emplace_back([acknowledge = make_acknowledger(inbox, 1'000, 0, nullptr)] {
            for (std::size_t i = 0; i < 1'000; ++i)
                acknowledge.one(i);
        });
    }
    loop.run();  // until the first report
    inbox->close();
    workers.clear();
    EXPECT_TRUE(inbox->take().empty());
}

}  // namespace
}  // namespace millrace
