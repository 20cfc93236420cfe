/// One seeded run of the whole pipeline: writers, an outbox, relays, a sink whose stream a group consumes.
///
/// The core and the drivers run unchanged; everything around them is simulated. Faults come for a while, then
/// stop; from then on all must be done within a bound.
#pragma once

#include "group_oracle.hpp"
#include "relay_oracle.hpp"
#include "relay_process.hpp"
#include "scenario.hpp"
#include "seams.hpp"
#include "trace.hpp"
#include "worker.hpp"
#include "writers.hpp"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace millrace::sim {

/// What a run did.
struct run_report {
    std::vector<std::string> failures;  ///< Empty: every promise was kept.
    std::vector<std::string> lines;     ///< The trace, when it was asked for.
    std::uint64_t events{0};
    std::uint64_t crashes{0};
    std::uint64_t pauses{0};
    std::uint64_t reshards{0};
    std::uint64_t rows{0};
    std::uint64_t handed{0};
    std::uint64_t repeated{0};  ///< Rows and records delivered more than once.
    repeats why;                ///< The same by cause.
    std::uint64_t effects{0};   ///< Committed by handlers that write the checkpoint themselves.
    std::uint64_t steps{0};
    nanoseconds took{0};  ///< Simulated.
};

class world {
public:
    world(scenario plan, const seams& between, bool with_trace);

    [[nodiscard]] run_report run();

private:
    struct seat {
        enum class kind : std::uint8_t { worker, relay };
        kind role;
        std::string id;  // of the worker
        std::unique_ptr<millrace::sim::process> process;
        bool stopping{false};
    };

    void wire();
    void add_seat(seat::kind role, std::string id, nanoseconds starts);
    void start(seat& where);
    [[nodiscard]] std::unique_ptr<process> make_process(
        const seat& where, std::function<void(const error&)> exit
    );
    [[nodiscard]] member_setup make_member(const seat& where);
    void kill(seat& where);
    void exited(seat& where, std::int64_t pid, const error& why);
    void start_later(seat& where, nanoseconds at_most);

    // Faults.
    void plan_faults();
    void every(nanoseconds mean, const std::function<void()>& what);
    [[nodiscard]] seat* some_running();
    void crash();
    void pause(bool only_loop);
    void stop_cleanly();
    void start_twin();
    void reshard();
    void outage();
    void replay();
    void trim();
    void set_a_clock();
    void look_at_budgets();
    void calm_down();

    [[nodiscard]] std::string unfinished() const;
    [[nodiscard]] std::string unbalanced() const;
    void check_end();
    [[nodiscard]] nanoseconds upto(nanoseconds span);

    scenario plan_;
    scheduler scheduler_;
    rng random_;
    trace trace_;
    verdicts verdicts_;
    health_book health_;
    seams seams_;

    faults store_;
    faults stream_faults_;
    faults outbox_faults_;
    faults sink_faults_;

    lease_table group_rows_;
    lease_table relay_rows_;
    outbox_table outbox_;
    sink_service sink_;
    fake_stream* orders_;
    group_oracle group_oracle_;
    relay_oracle relay_oracle_;
    std::unique_ptr<writers> writers_;

    std::set<std::int64_t> running_;  // process ids
    std::int64_t next_pid_{1000};
    bool mended_{false};
    bool faults_over_{false};
    run_report report_;
    std::vector<std::unique_ptr<seat>> seats_;
};

/// Draws the scenario of the seed, runs it and reports.
[[nodiscard]] run_report run_seed(std::uint64_t seed, bool with_trace);

}  // namespace millrace::sim
