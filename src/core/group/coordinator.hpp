/// One worker's part in a group as a state machine: sees the others, ends sessions that have lapsed, creates
/// rows, takes and gives back shards, writes checkpoints in time.
///
/// It does no I/O and reads no clock: the caller carries out the actions, reports their outcomes, and calls
/// again at `wake()`. A quiet tick costs one small listing of the workers, however many shards there are.
/// It leaves `updated_at` to the caller. Lives on one thread.
#pragma once

#include "group/assignment.hpp"
#include "group/checkpoint_budget.hpp"
#include "group/coordinator_actions.hpp"
#include "group/coordinator_events.hpp"
#include "group/coordinator_state.hpp"
#include "group/lapse.hpp"
#include "group/lease.hpp"
#include "group/membership.hpp"
#include "group/missing_shards.hpp"
#include "group/options.hpp"
#include "group/restored_stream.hpp"
#include "group/shard_table.hpp"
#include "group/trouble.hpp"
#include "port/lease_store.hpp"
#include "port/record_source.hpp"
#include "shard/lineage.hpp"

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace millrace {

class coordinator {
public:
    coordinator(
        group_options options,
        process_identity self,
        lapse_observer::process_gone gone,
        std::function<std::uint64_t()> random
    );

    /// `deadline` is that of the present session; it limits takes and checkpoints.
    [[nodiscard]] std::vector<group_action> step(mono_time now, mono_time deadline, const group_event& what);

    /// As `lease_machine::advance`. The caller steps with `group_tick` when `wake()` has come nearer.
    result<void> advance(
        mono_time now, const shard_id& shard, epoch e, const checkpoint& reached, std::uint64_t records
    );

    /// The error that the use of this handle would give.
    [[nodiscard]] result<void> usable(const shard_id& shard, epoch e) const;

    [[nodiscard]] mono_time wake() const;

    /// The ticket of the latest request to persist.
    [[nodiscard]] std::uint64_t persist_requests(const shard_id& shard) const;
    [[nodiscard]] std::uint64_t records_at_risk() const;
    [[nodiscard]] std::vector<shard_status> status() const;

    /// The stream was restored from an older copy; what to do.
    [[nodiscard]] std::optional<error> contradiction() const { return restored_.found(); }

    [[nodiscard]] const group_trouble& trouble() const { return trouble_; }

    /// The latest listing of the stream was complete, and none that was asked for since is missing.
    [[nodiscard]] bool stream_is_known() const { return stream_ && !trouble_.stream && !discovery_; }

    /// By the latest complete listing of the stream; nothing and false before the first.
    [[nodiscard]] std::optional<stream_moment> stream(mono_time now) const;
    [[nodiscard]] bool unlisted(const shard_id& shard) const;
    [[nodiscard]] std::size_t leases_held() const;
    [[nodiscard]] const incarnation& mine() const { return mine_; }

    /// Admitted to take all shards, or no older session under this worker's id is left.
    [[nodiscard]] bool settled() const;

private:
    enum class group_state : std::uint8_t { unknown, reading, creating, known };

    // coordinator.cpp: listings and the group row
    void on(const group_begin&);
    void on(const group_tick&);
    void on(const session_came& what);
    void on(const session_went& what);
    void on(const workers_listed& reply);
    void on(const rows_listed& reply);
    void note_unreadable(const std::vector<shard_row>& rows);
    [[nodiscard]] std::vector<worker_row> note_unreadable(
        const std::vector<worker_row>& rows, worker_listing& sessions
    );
    void on(const stream_listed& reply);
    void on(const group_read& reply);
    void on(const group_written& reply);
    void on(const session_ended_reply& reply);
    void on(const discover_request&);
    void request_listings();
    void read_group_row();
    void write_group_row(group_row row, std::optional<version> expected);
    void settle_group_row();
    void restore_group_row();
    void adopt_group_row(const group_row& row);
    void end_lapsed(const std::vector<worker_row>& over);
    void admit_all_shards(const std::vector<worker_row>& listed, bool alone);
    void watch_elders(const std::vector<worker_row>& listed);
    void yield_to(const worker_row& other);
    void fail_for_good(error why);
    void announce_failure(error why);
    void tell(log_level level, const char* event, const char* key, std::string value, std::string detail);
    void tell_failure(const char* event, const char* key, std::string value, const error& why);

    // coordinator_plan.cpp: who should hold what
    [[nodiscard]] bool can_plan() const;
    void plan();
    [[nodiscard]] bool behind_a_gone_parent(const shard_standing& child);
    void plan_rows(const lineage& traced);
    void plan_leases(const std::vector<assignable_shard>& shards);
    void hold_everything(const std::vector<assignable_shard>& shards);
    void adopt_late_takes(const std::vector<assignable_shard>& shards, const std::vector<bool>& wanted);
    void take_planned();
    void create_planned();
    void tidy();
    void forget_tidied();
    void on(const row_created& reply);
    void on(const row_removed& reply);
    [[nodiscard]] epoch epoch_above() const;

    // coordinator_leases.cpp: what this worker holds
    void on(const lease_written& reply);
    void on(const lease_read& reply);
    void on(const persist_request& what);
    void on(const release_request& what);
    void on(const finish_request& what);
    void on(const stop_request&);
    [[nodiscard]] bool of_present_lease(const shard_id& shard, std::uint64_t lease) const;
    void step_lease(const shard_id& shard, const lease_machine::event& what);
    void forget_lease(const shard_id& shard);
    void start_lease(const shard_row& row, const lease_machine::event& how, bool silent);
    void lease_happened(const shard_id& shard, lease_machine& lease, const lease_machine::action& what);
    void grant(const shard_id& shard, const lease_machine& lease, start_position start);
    void read_starts();
    void starts_read(const result<std::optional<group_row>>& outcome);
    void lease_ended(const shard_id& shard, const lease_machine& lease);
    void write_due_checkpoints();
    void revoke(const shard_id& shard);
    void release_asked();
    void drain();
    void release_early(const shard_id& shard, error why);
    [[nodiscard]] std::set<shard_id> active_leases() const;
    [[nodiscard]] bool holds_any() const;

    // coordinator_recreated.cpp: the stream was deleted and made again under its name
    [[nodiscard]] bool is_of_stream(const group_row& row) const;  // of which there is a listing
    void notice_recreated();
    void recreated_rows_listed(const std::vector<shard_row>& rows);
    void recreated_group_read();
    void recreated_stream_listed(step_count begun);
    void set_aside();
    void switch_group_row();
    void on(const row_set_aside& reply);

    group_options options_;
    std::function<std::uint64_t()> random_;
    lapse_observer lapse_;
    checkpoint_budget budget_;

    mono_time now_{};
    mono_time deadline_{mono_time::min()};
    step_count steps_{0};
    std::vector<group_action> actions_;
    bool begun_{false}, failed_{false}, replan_{false};
    bool urgent_{false};   // a checkpoint is due by its number of records
    bool changed_{false};  // rows of ours that the others should look at

    incarnation mine_;
    worker_listing workers_;
    std::map<incarnation, std::uint64_t> changes_;
    std::map<incarnation, version> first_counters_;  // all-shards mode
    group_membership membership_;
    std::set<incarnation> ending_;
    bool admitted_{false};                         // all-shards mode: no session lives
    bool session_is_over_{false};                  // while its leases are given up
    std::optional<std::set<incarnation>> elders_;  // under our worker id before us; empty: not looked yet

    listing_requests worker_list_;  // one every tick

    shard_table table_;
    listing_requests row_list_;
    bool rows_known_{false};

    std::optional<stream_listing> stream_;
    group_trouble trouble_;
    listing_requests stream_list_;
    std::optional<step_count> discovery_;  // the latest `discover_request` that no listing has answered
    mono_time stream_seen_{};              // when the latest complete listing was asked for
    std::set<shard_id> unlisted_rows_;     // rows of shards that the latest listing lacks
    std::map<shard_id, mono_time> unlisted_since_;
    std::set<std::string> problems_told_;
    restored_stream restored_;
    missing_shards missing_;

    group_state group_state_{group_state::unknown};
    std::optional<group_row> group_;
    group_row_requests group_asked_;

    std::map<shard_id, lease_machine> leases_;
    std::map<shard_id, std::uint64_t> lease_numbers_;  // of the present lease of each shard
    std::uint64_t leases_started_{0};
    start_reads starts_;
    std::set<shard_id> granted_, silent_, revoked_, releasing_, dirty_;
    std::set<shard_id> to_release_;  // asked for, behind those under way
    std::map<shard_id, mono_time> lease_wakes_;
    planned_work plan_;

    std::optional<mono_time> drain_until_, give_up_at_;
    bool stopped_{false};

    using recreation = stream_recreation::phase;
    stream_recreation recreated_;
};

}  // namespace millrace
