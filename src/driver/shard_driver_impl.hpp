/// The insides of `shard_driver`: reading stands in `shard_reading.cpp`, handing over and the lease in
/// `shard_driver.cpp`.
#pragma once

#include "alarm.hpp"
#include "retry/backoff.hpp"
#include "shard/delivery.hpp"
#include "shard/reader.hpp"
#include "shard_driver.hpp"
#include "shard_inbox.hpp"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace millrace {

struct shard_driver::impl {
    impl(const shard_surroundings& surroundings, lease_grant granted);
    ~impl();
    impl(const impl&) = delete;
    impl& operator=(const impl&) = delete;

    [[nodiscard]] mono_time now() const { return around.loop.now(); }
    [[nodiscard]] const std::string& name() const { return grant.shard.value(); }

    void say(log_level level, std::string_view event, std::string detail) const;
    // As `say`, for what may come with every record or attempt.
    void say_failure(log_level level, std::string_view event, const std::string& detail) const;

    void read_step(const shard_reader::event& what);
    void on_failed(error why);
    void pump_open();
    void on_open(result<read_cursor> how);
    void on_read(mono_time sent, read_memory::reservation& room, result<read_reply> how);
    void report(shard_reader::notice what, const error& why);
    void report_gap(const std::string& detail);
    void pump_read();
    void read_again();
    [[nodiscard]] bool awaits_its_start();
    [[nodiscard]] nanoseconds failing() const;
    [[nodiscard]] std::optional<error> trouble() const;

    void on_reports();
    void take(shard_inbox::report& what);
    void on_returned(const result<handled>& how);
    void pump_work();
    [[nodiscard]] bool tell(std::string_view function, void (record_handler::*what)(const shard_id&));
    [[nodiscard]] bool noted(const result<void>& how);
    void assign();
    void call_handler(shard_delivery::hand what);
    void bury(shard_delivery::bury what);
    void on_stopped();

    void proceed();
    void revoke();
    void end_lease(bool finished);
    void on_lease_ended(bool finished, const result<void>& how);
    void lost(const error& why);
    void end_now();
    void count();

    shard_surroundings around;
    lease_grant grant;
    std::function<bool()> still_owner;
    read_memory::member member;
    shard_reader reader;
    std::optional<shard_delivery> work;
    backoff lease_pause;
    backoff assign_pause;
    std::shared_ptr<shard_inbox> inbox;
    alarm read_alarm;
    alarm work_alarm;
    alarm lease_alarm;
    std::stop_source stop;
    lifetime alive;

    std::optional<start_position> to_open;   // an opening that waits for its turn
    std::optional<read_cursor> to_read;      // a read that waits for room
    shard_progress so_far;                   // all but what is worked out when it is asked for
    mono_time looked_at;                     // when the latest read that succeeded was sent, or the start
    std::optional<mono_time> asked_at;       // a request is under way since then
    bool awaiting{false};                    // the moment at which it is to begin
    std::optional<mono_time> failing_since;  // the first of the requests that failed was sent; no read since
    std::optional<error> failure;            // what the latest of them met
    std::optional<mono_time> waiting_since;  // records wait for their acknowledgement and none came
    bool assigned{false};                    // the handler has been told, and has taken it
    mono_time assign_at{};
    bool calling{false};
    bool held_back{false};
    bool draining{false};
    bool ending{false};  // finish or release is under way
    bool ended{false};
    bool stop_said{false};
    bool gap_said{false};
    bool gone{false};             // its end was not read: the stream no longer has it
    std::optional<error> damage;  // what the latest request met, if it was damage
    shard_delivery::counters counted;
};

}  // namespace millrace
