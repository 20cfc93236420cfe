/// A consuming process: a member of the group, a consumer driver, and a handler that is slow, fails and
/// acknowledges as it likes.
#pragma once

#include "consumer_driver.hpp"
#include "fake_stream.hpp"
#include "group_oracle.hpp"
#include "member.hpp"
#include "process.hpp"
#include "scenario.hpp"

#include <memory>
#include <optional>

namespace millrace::sim {

struct worker_setup {
    member_setup member;
    shard_options shard;
    handler_habits habits;
    fake_stream& stream;
    const faults& stream_faults;
    group_oracle& oracle;
    const bool& mended;  ///< Handlers no longer fail, and take no time.
};

class worker final : public process {
public:
    /// `exited` is called in the world when the process ends by itself; it may destroy the worker.
    worker(const surroundings& around, const worker_setup& setup, std::function<void(const error&)> exited);
    ~worker() override;

    void start() override;
    void stop(completion<void> done) override { member_.stop(std::move(done)); }
    [[nodiscard]] member& part() override { return member_; }
    [[nodiscard]] std::string over_budget() const override;

private:
    class thread_host;
    class pool;
    class handler;
    class dead_letters;

    worker_setup setup_;
    member member_;
    std::function<void(const error&)> exited_;
    std::unique_ptr<thread_host> host_;
    std::unique_ptr<pool> pool_;
    std::unique_ptr<record_handler> handler_;
    std::unique_ptr<dead_letters> dead_letters_;
    std::unique_ptr<record_source> source_;
    std::unique_ptr<consumer_driver> consumer_;
};

}  // namespace millrace::sim
