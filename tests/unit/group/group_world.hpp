/// A small world for tests of the group: processes of one group on simulated hosts over one table of leases.
#pragma once

#include "group_process.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace millrace::sim {

inline checkpoint at(std::uint64_t n) {
    return {position{sequence_number{n}, 0}, wall_time{milliseconds{1}}};
}

struct GroupWorld : testing::Test {
    GroupWorld() {
        stream->identity = "made at 1";
        stream->now = wall_time{milliseconds{1'767'225'600'750}};
        stream->shards = shards_named(4);
    }

    /// A process of its own; on a machine of its own unless `machine` says which.
    worker& add(const std::string& name, const std::string& machine = "") {
        const auto pid = next_pid++;
        process_identity self{
            machine.empty() ? name : machine,
            "boot of " + (machine.empty() ? fmt::format("machine {}", pid) : machine),
            "pid:[1]",
            pid,
            1};
        workers.push_back(std::make_unique<worker>(
            world,
            random,
            table,
            plan,
            stream,
            self,
            name,
            settings,
            [this](const process_identity& process) { return gone.contains(process.pid); }
        ));
        pids[workers.back().get()] = pid;
        return *workers.back();
    }
    worker& run(const std::string& name, const std::string& machine = "") {
        auto& added = add(name, machine);
        added.start();
        return added;
    }
    void kill(worker& victim) {
        victim.crash();
        gone.insert(pids.at(&victim));
    }

    [[nodiscard]] shard_row row(const std::string& shard) const {
        const auto* found = table.find(shard_id{shard});
        return found == nullptr ? shard_row{} : std::get<shard_row>(*found);
    }
    [[nodiscard]] std::optional<group_row> group_row_now() const {
        const auto* found = table.find(std::monostate{});
        if (found == nullptr) return std::nullopt;
        return std::get<group_row>(*found);
    }
    [[nodiscard]] std::size_t worker_rows() const {
        return static_cast<std::size_t>(std::count_if(
            table.rows().begin(),
            table.rows().end(),
            [](const auto& r) { return std::holds_alternative<worker_row>(r.second); }
        ));
    }

    /// Holders that may act now.
    [[nodiscard]] int holders(const shard_id& shard) const {
        return static_cast<int>(std::count_if(workers.begin(), workers.end(), [&](const auto& w) {
            return w->acts_on(shard);
        }));
    }
    [[nodiscard]] bool each_shard_has_one_holder() const {
        return std::all_of(stream->shards.begin(), stream->shards.end(), [&](const listed_shard& s) {
            return holders(s.shard) == 1;
        });
    }

    scheduler world;
    rng random{7};
    lease_table table;
    faults plan;
    group_settings settings;
    std::shared_ptr<stream_listing> stream = std::make_shared<stream_listing>();
    std::vector<std::unique_ptr<worker>> workers;
    std::map<const worker*, std::int64_t> pids;
    std::set<std::int64_t> gone;
    std::int64_t next_pid{100};
};

}  // namespace millrace::sim
