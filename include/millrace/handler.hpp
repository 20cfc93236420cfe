/// The application's side of a consumer: what it is told, what it is given, how it acknowledges.
#pragma once

#include <millrace/error.hpp>
#include <millrace/names.hpp>
#include <millrace/position.hpp>
#include <millrace/record.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {

/// Where the rows of a group's shards stand in PostgreSQL, for a handler that writes its checkpoints itself.
struct checkpoint_place {
    std::string schema;
    std::string stream;  ///< As the rows name it.
    std::string group;
    nanoseconds lease;
};

/// A shard that this worker now processes.
struct shard_grant {
    shard_id shard;
    millrace::epoch epoch;                    ///< Fences what the handler writes elsewhere.
    std::optional<position> checkpoint;       ///< Everything up to here was acknowledged earlier.
    incarnation owner{};                      ///< This session, as the shard's row names it.
    std::optional<checkpoint_place> place{};  ///< For `checkpoint_writer::handler` only.
};

/// Acknowledges the records of one batch, by index, at once or later, from any thread, in any order.
///
/// Copies are cheap and refer to the same batch. The checkpoint moves to the highest record below which all
/// are acknowledged. After the lease is lost, calls have no effect.
class acknowledger {
public:
    /// What an acknowledger reports; `failed` starts the failure policy of the group for that record.
    struct report {
        std::size_t first;
        std::size_t last;  ///< inclusive
        std::optional<error> failed;
    };

    explicit acknowledger(std::size_t size, std::function<void(report)> sink)
        : size_(size), sink_(std::move(sink)) {}

    void all() const {
        if (size_ > 0) sink_({0, size_ - 1, std::nullopt});
    }
    void up_to(std::size_t index) const { sink_({0, index, std::nullopt}); }
    void one(std::size_t index) const { sink_({index, index, std::nullopt}); }
    void fail(std::size_t index, error why) const { sink_({index, index, std::move(why)}); }

private:
    std::size_t size_;
    std::function<void(report)> sink_;
};

/// What surrounds one call of the handler.
struct delivery {
    millrace::epoch epoch;
    std::uint32_t attempt{1};  ///< 1 for the first try of these records.
    std::stop_token stop;      ///< Set when the shard is to be given back or was lost.
    std::function<bool()>
        still_owner;  ///< Checks the lease's deadline now; call it before an outside effect.
    acknowledger acknowledge;
};

/// How a call ended well.
enum class handled : std::uint8_t {
    all,    ///< The whole batch is acknowledged.
    later,  ///< The handler acknowledges through its `acknowledger`, possibly after it has returned.
};

/// Processes the records of the shards that this worker holds.
///
/// Threads: `handle` runs on a worker thread; calls for one shard never overlap, calls for different shards
/// do. The other functions run on the loop and must return at once. An error or an exception of `handle`
/// starts the failure policy for what it did not acknowledge; but once `stop` is set, the errors `cancelled`
/// and `not_owner` say that the call ended early, and what is open comes again elsewhere. What the other
/// functions throw is logged and counted; after an exception of `assigned`, the shard stops under the policy
/// `stop`, and otherwise `assigned` is called again, after a pause, before any record is handed over.
class record_handler {
public:
    virtual ~record_handler() = default;

    virtual result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) = 0;

    virtual void assigned(const shard_grant&) {}  ///< The shard is ours; batches follow.
    virtual void revoked(const shard_id&) {}      ///< To be given back: finish what is under way.
    virtual void lost(const shard_id&) {
    }  ///< No longer ours; what was not acknowledged comes again elsewhere.
    virtual void finished(const shard_id&) {}  ///< Closed, and every record acknowledged.
};

}  // namespace millrace
