/// Where a consumer's records go in tests: a handler that does what the test says, a pool whose calls take
/// time, and dead letters.
#pragma once

#include "consumer_driver.hpp"
#include "scheduler.hpp"
#include "shard_driver.hpp"

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::testing_shard {

using namespace std::chrono_literals;

inline error broken(std::string detail = "simulated") {
    return {errc::handler_failed, retry_advice::after_delay, false, std::move(detail)};
}

/// Runs each job some time later, as a thread of its own would; or keeps it until `let_go`.
class sim_pool final : public handler_pool {
public:
    explicit sim_pool(sim::scheduler& world) : world_(world) {}

    void run(std::function<void()> job) override {
        if (hold) {
            held.push_back(std::move(job));
        } else {
            world_.at(world_.now() + takes, std::move(job));
        }
    }
    void let_go() {
        for (auto& job : std::exchange(held, {}))
            job();
    }

    nanoseconds takes{1ms};
    bool hold{false};
    std::vector<std::function<void()>> held;

private:
    sim::scheduler& world_;
};

/// Notes what it is told and does what `behave` says.
class test_handler final : public record_handler {
public:
    using behaviour =
        std::function<result<handled>(const std::shared_ptr<const record_batch>&, const delivery&)>;

    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        ++calls;
        std::string line = batch->shard().value().substr(batch->shard().value().size() - 1) + ":";
        for (const auto& r : batch->records())
            line += " " + std::string(r.data.value_or("-"));
        told.push_back(line + (how.attempt > 1 ? " attempt " + std::to_string(how.attempt) : ""));
        return behave ? behave(batch, how) : result<handled>{handled::all};
    }
    void assigned(const shard_grant& g) override { note("assigned", g.shard); }
    void revoked(const shard_id& s) override { note("revoked", s); }
    void lost(const shard_id& s) override { note("lost", s); }
    void finished(const shard_id& s) override { note("finished", s); }

    std::vector<std::string> told;
    int calls{0};
    behaviour behave;
    std::map<std::string, int> throws;  // how often each function still throws

private:
    void note(const std::string& what, const shard_id& s) {
        told.push_back(what + " " + s.value().back());
        if (throws.contains(what) && throws[what]-- > 0) throw std::runtime_error(what + " does not work");
    }
};

class test_dead_letters final : public dead_letter_sink {
public:
    explicit test_dead_letters(host& loop) : loop_(loop) {}

    void put(std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done)
        override {
        result<void> how;
        if (failures > 0) {
            --failures;
            how = fail(errc::unavailable, "the dead letters cannot be written");
        } else {
            stored.push_back(std::string(batch->records()[index].data.value()) + ": " + why.detail);
        }
        loop_.call_at(loop_.now() + 10ms, [done = std::move(done), how] { done(how); });
    }

    std::vector<std::string> stored;
    int failures{0};

private:
    host& loop_;
};

}  // namespace millrace::testing_shard
