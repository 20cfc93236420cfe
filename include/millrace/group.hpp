/// Shares named resources among the workers of a group: one owner each, from a remembered position.
///
/// For work that is not a stream: partitions of a table, mailboxes, tenants. Calls block and are thread-safe.
/// The group renews its session on threads of its own; a `lease` whose worker was paused too long reports
/// `not_owner`, and what it still writes is refused.
#pragma once

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/names.hpp>
#include <millrace/options.hpp>
#include <millrace/position.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace millrace {

struct group_settings {
    std::string name;
    std::string state;                   ///< An address: where leases and positions are kept.
    std::vector<std::string> resources;  ///< What is shared; the same names in every worker.

    millrace::worker_id worker;  ///< Empty: made from host, process and a random number.
    group_options sharing;
    nanoseconds lease{std::chrono::seconds{10}};  ///< A dead worker's resources move after this time.
    log_sink* log{nullptr};                       ///< Null: nothing is logged. Must outlive the group.
};

/// This worker's place among the live ones; advisory, never ownership.
struct membership {
    std::size_t index{0};
    std::size_t total{0};
};

class group;

/// The right to work on one resource. Copies refer to the same right. After `done`, `release` or a loss,
/// every call is a typed error (`already_finished`, `already_released`, `not_owner`), and `cancelled` after
/// the end of the group. Not to be called from a callback of `stop`.
class lease {
public:
    [[nodiscard]] const std::string& resource() const noexcept;

    /// Grows with every change of owner: fences what is written elsewhere.
    [[nodiscard]] millrace::epoch epoch() const noexcept;

    /// Where the last owner stopped; nothing at first.
    [[nodiscard]] std::optional<position> begin() const;

    /// Whether this process may still act on the resource. Ask before every outside effect.
    [[nodiscard]] bool valid() const;

    /// Requested when another worker is to have the resource or it is lost: finish, then `release`.
    [[nodiscard]] std::stop_token stop() const;

    /// Remembers that everything up to here is done; written within `checkpoint_every`. Never goes back
    /// (`invalid_argument`). Memory only.
    [[nodiscard]] result<void> advance(position reached) const;
    [[nodiscard]] result<void> advance(std::uint64_t reached) const;

    /// Writes what was advanced, now.
    [[nodiscard]] result<void> persist() const;

    /// Writes the position and gives the resource back.
    [[nodiscard]] result<void> release() const;

    /// There is nothing left to do for this resource, for ever: nobody acquires it again.
    [[nodiscard]] result<void> done() const;

private:
    friend class group;
    struct impl;
    explicit lease(std::shared_ptr<impl> inside);
    std::shared_ptr<impl> impl_;
};

class group {
public:
    /// Registers this worker, waits for the first look at the others (a lease time at most) and begins to
    /// take its share. Errors: settings, an unusable state, and `worker_id_taken`; later calls report the
    /// last of these, too, because a doubled id shows only when the other one moves.
    [[nodiscard]] static result<group> join(group_settings settings);
    group(group&&) noexcept;
    group& operator=(group&&) noexcept;

    /// As `leave`, without its outcome.
    ~group();

    [[nodiscard]] result<membership> members() const;

    /// The next resource that this worker is to process; waits until there is one. Errors: `unavailable`
    /// after `timeout`, `already_finished` when every resource is done, `cancelled` when `stop` is requested
    /// or the group was left.
    [[nodiscard]] result<lease> acquire(nanoseconds timeout, const std::stop_token& stop = {});

    /// The same for one resource. Errors also: `not_found` when it is not one of the group's, `not_owner`
    /// when another worker has it at the time-out: the detail names it, and for how long its lease still is.
    [[nodiscard]] result<lease> acquire(
        const std::string& resource, nanoseconds timeout, const std::stop_token& stop = {}
    );

    /// Whether `done` was written for the resource, by any worker. `not_found` when it is not one of the
    /// group's.
    [[nodiscard]] result<bool> finished(const std::string& resource) const;

    /// Gives back every lease from where it was advanced to, and deregisters. Call it when nobody works on a
    /// lease any more. In a callback of a lease's `stop`, which cannot wait for it, it only begins and
    /// returns `invalid_argument`.
    result<void> leave();

private:
    struct impl;
    explicit group(std::unique_ptr<impl> inside);
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
