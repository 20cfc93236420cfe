/// One process of a group in the world: a keeper and a loop on one clock, a session and a group driver.
///
/// As in production, the keeper has a host and a store of its own, and its news is posted to the loop.
#pragma once

#include "fake_lease_store.hpp"
#include "group_driver.hpp"
#include "health.hpp"
#include "scheduler.hpp"
#include "seams.hpp"
#include "session_driver.hpp"
#include "trace.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace millrace::sim {

/// Writes the log of a process into the trace, and looks whether each fault is explained.
class trace_log final : public log_sink {
public:
    trace_log(trace& t, verdicts& v, std::string who) : trace_(t), verdicts_(v), who_(std::move(who)) {}

    [[nodiscard]] bool enabled(log_level level) const noexcept override {
        return level >= log_level::warning || trace_.on();
    }
    void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override;

private:
    trace& trace_;
    verdicts& verdicts_;
    std::string who_;
};

/// What a process shares with the world.
struct surroundings {
    scheduler& world;
    rng& random;
    trace& events;
    verdicts& judge;
    const seams& between;
    std::function<bool(const process_identity&)> gone;
    health_book& health;
};

struct member_setup {
    process_identity process;
    session_options session;
    group_options group;
    clock_error clock;
    lease_table& table;
    const faults& store;
};

class member final : private session_listener {
public:
    member(const surroundings& around, const member_setup& setup);
    ~member() override;

    void join(shard_lister& lister, group_listener& listener);
    void start();

    /// The process is gone: its hosts never run again, and its drivers are destroyed.
    void end();

    /// As on SIGTERM; completes on the loop.
    void stop(completion<void> done);

    void pause();
    void jump_wall(nanoseconds by);
    void resume();

    [[nodiscard]] sim_host& loop() noexcept { return loop_; }
    [[nodiscard]] group_driver& group() noexcept { return *group_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const process_identity& process() const noexcept { return setup_.process; }
    [[nodiscard]] const worker_id& worker() const noexcept { return setup_.session.worker; }
    [[nodiscard]] const surroundings& around() const noexcept { return around_; }

private:
    void beat();
    void session_started(const incarnation& mine) override;
    void session_ended(const incarnation& mine, const error& why) override;

    surroundings around_;
    member_setup setup_;
    std::string name_;
    trace_log log_;
    sim_host keeper_;
    sim_host loop_;
    std::unique_ptr<lease_store> keeper_store_;
    std::unique_ptr<lease_store> loop_store_;
    std::unique_ptr<session_driver> session_;
    std::unique_ptr<session_view> view_;
    std::unique_ptr<group_driver> group_;
};

}  // namespace millrace::sim
