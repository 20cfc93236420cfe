/// Reads the shards that the group grants and feeds them to a handler: one `shard_driver` a shard.
///
/// Lives on the loop; handler calls run through `handler_pool`.
#pragma once

#include "group_driver.hpp"
#include "port/host.hpp"
#include "port/record_source.hpp"
#include "shard/options.hpp"

#include <millrace/error.hpp>
#include <millrace/handler.hpp>
#include <millrace/shard_progress.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace millrace {

/// Runs jobs away from the loop. The job itself reports back through `host::post`.
class handler_pool {
public:
    virtual ~handler_pool() = default;
    virtual void run(std::function<void()> job) = 0;
};

/// Takes records that the failure policy gives up. Completes when the record is stored durably.
class dead_letter_sink {
public:
    virtual ~dead_letter_sink() = default;
    virtual void put(
        std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done
    ) = 0;
};

/// Totals since the start.
struct consumer_counters {
    std::uint64_t records_read{0};
    std::uint64_t bytes_read{0};
    std::uint64_t records_handed{0};
    std::uint64_t records_acknowledged{0};
    std::uint64_t records_dead_lettered{0};
    std::uint64_t handler_failures{0};
    std::uint64_t reads{0};
    std::uint64_t reads_throttled{0};
    std::uint64_t reads_failed{0};  ///< Without those.
    std::uint64_t gaps_reported{0};
    std::uint64_t shards_stopped{0};   ///< By the failure policy.
    std::uint64_t bytes_in_memory{0};  ///< Now.
};

class shard_leases;

class consumer_driver final : public group_listener {
public:
    /// `group` is set by `attach` before the group starts. `dead_letters` may be null unless the policy needs
    /// it. With `place`, the handler writes the checkpoints: the group is told of none.
    consumer_driver(
        host& loop,
        record_source& source,
        record_handler& handler,
        handler_pool& pool,
        dead_letter_sink* dead_letters,
        shard_options options,
        std::optional<checkpoint_place> place = std::nullopt
    );
    ~consumer_driver() override;

    void attach(group_driver& group);

    /// The same for whatever else keeps leases.
    void attach(std::unique_ptr<shard_leases> leases);

    /// Every shard held is at the tip and nothing is in flight.
    [[nodiscard]] bool idle() const;

    /// As `idle`, but some shards cannot be read further because what is stored is damaged: what the first of
    /// them met.
    [[nodiscard]] std::optional<error> idle_but_damaged() const;
    [[nodiscard]] consumer_counters counters() const;

    /// Why a shard has not been read for some seconds: of the first one.
    [[nodiscard]] std::optional<error> trouble() const;

    /// Of each shard held.
    [[nodiscard]] std::vector<shard_progress> progress() const;

    /// Called when the group fails for good; at most once.
    void on_failed(std::function<void(const error&)> what);

    void granted(const lease_grant& grant) override;
    void revoke(const shard_id& shard) override;
    void lost(const shard_id& shard, const error& why) override;
    void membership(std::size_t index, std::size_t total) override;
    void failed(const error& why) override;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
