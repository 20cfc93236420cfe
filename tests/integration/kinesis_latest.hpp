/// A group on the stand-in of the Kinesis API that begins at the latest.
#pragma once

#include "kinesis_world.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace millrace::test {

/// A consumer whose group begins at the latest, behind a record that arrived long before.
class latest_reader {
public:
    /// `before` is called when that record is there, and the consumer is not.
    explicit latest_reader(kinesis_world& world, const std::function<void()>& before = {}) : world_(world) {
        world.put("k", "long before");
        if (before) before();
        std::this_thread::sleep_for(1100ms);  // the pinned moment is rounded down to a second
        auto settings = world.settings();
        settings.sharing.start = start_policy::latest;
        running_.emplace(std::move(settings), handler_);
    }

    /// Waits until the service was asked so often.
    void until_asked(const std::string& operation, std::uint64_t times) const {
        while (world_.fake.requests(operation) < times)
            std::this_thread::sleep_for(5ms);
    }

    /// What it was given until it had so many; it is stopped.
    std::vector<std::string> read(std::size_t distinct) {
        EXPECT_TRUE(seen_.wait(distinct));
        EXPECT_TRUE(running_->stop());
        return seen_.data();
    }

private:
    kinesis_world& world_;
    kinesis_receipts seen_;
    kinesis_handler handler_{seen_};
    std::optional<background<consumer>> running_;
};

}  // namespace millrace::test
