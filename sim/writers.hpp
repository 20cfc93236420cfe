/// The applications: they commit events into the outbox, as a scenario says.
#pragma once

#include "fake_outbox.hpp"
#include "relay_oracle.hpp"
#include "scenario.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace millrace::sim {

class writers {
public:
    writers(scheduler& world, rng& random, outbox_table& table, relay_oracle& oracle, const scenario& plan);

    /// What the sink says of a row: guilty rows are refused until `mend`, reluctant ones a few times.
    [[nodiscard]] std::optional<error> verdict(const outbox_row& row);
    void mend() { mended_ = true; }

    /// Transactions that are still open.
    [[nodiscard]] std::size_t open() const noexcept { return open_; }

private:
    void write_one();
    void insert(outbox_table::transaction tx, row_id id, event what);
    [[nodiscard]] event make_event();
    [[nodiscard]] row_id choose_id(outbox_table::transaction tx, bool serialised);
    [[nodiscard]] nanoseconds upto(nanoseconds span);

    scheduler& world_;
    rng& random_;
    outbox_table& table_;
    relay_oracle& oracle_;
    const scenario& plan_;
    bool mended_{false};
    std::size_t open_{0};
    std::set<std::string> busy_;  // keys that are written by one transaction at a time
    std::map<std::string, std::uint64_t> counters_;
    std::vector<row_id> skipped_;
    std::set<row_id> guilty_;
    std::map<row_id, std::uint64_t> reluctant_;
};

}  // namespace millrace::sim
