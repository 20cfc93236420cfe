/// Accounts for every record that a handler is given again: promise 6, counted.
///
/// Within one grant a record comes again only after the handler failed on it. In a later grant it may come
/// again when the one before left it above the checkpoint: it was with the handler, or acknowledged so lately
/// that neither the checkpoint interval nor the record cap asked for it to be written.
#pragma once

#include "health.hpp"
#include "trace.hpp"

#include <millrace/names.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace millrace::sim {

/// What the options promise.
struct delivery_bounds {
    nanoseconds checkpoint_every{1s};
    std::uint64_t checkpoint_records{10'000};
    nanoseconds drain_limit{10s};
    nanoseconds lease{10s};
};

class delivery_book {
public:
    enum class ending : std::uint8_t { released, finished, taken_away, reset };

    /// `never_due` says that a record need not be handed to anyone: trimmed, or before the start.
    delivery_book(
        scheduler& world,
        verdicts& v,
        const health_book& health,
        std::function<bool(const shard_id&, std::size_t)> never_due
    )
        : world_(world), verdicts_(v), health_(health), never_due_(std::move(never_due)) {}

    delivery_bounds bounds;

    /// `begin`: the first record above the checkpoint when the grant began.
    void handed(
        const shard_id& shard, epoch under, const std::string& who, std::size_t begin, std::size_t index
    );
    void failed(const shard_id& shard, epoch under, std::size_t index);
    void acknowledged(const shard_id& shard, epoch under, std::size_t index);

    /// The worker was asked for the shard: its drain begins.
    void revoked(const shard_id& shard) { shards_[shard].revoked_at = world_.now(); }

    /// The row left the grant; all below `written` are under its checkpoint.
    void ended(const shard_id& shard, ending how, std::size_t written);

    /// Under which epoch the process last was given records of the shard.
    [[nodiscard]] epoch latest(const shard_id& shard, const std::string& who) const;

    [[nodiscard]] const repeats& counted() const noexcept { return counted_; }

private:
    struct entry {
        std::uint32_t handed{0};
        std::uint32_t failed{0};
        bool waits{false};  // it failed and was not handed over since
        world_time handed_at{0};
        world_time acknowledged_at{-1};
    };
    struct grant {
        epoch under;
        std::string who;
        std::size_t begin{0};
        std::vector<entry> entries;
        bool over{false};
    };
    struct shard_book {
        grant now;
        std::vector<cause> causes;  // why a record may come again in a later grant
        std::optional<world_time> revoked_at;
    };

    void count_again(const shard_id& shard, shard_book& book, std::size_t index);
    void check_retry(const shard_id& shard, const grant& g, std::size_t index) const;
    void check_release(
        const shard_id& shard, const grant& g, std::optional<world_time> revoked_at, std::size_t written
    ) const;
    void check_loss(const shard_id& shard, const grant& g, std::size_t written) const;
    entry* find(const shard_id& shard, epoch under, std::size_t index);

    /// Calls `what(index, since)` for the records that are acknowledged without a gap, and since when.
    template <class F>
    void each_settled(const shard_id& shard, const grant& g, F what) const;

    scheduler& world_;
    verdicts& verdicts_;
    const health_book& health_;
    std::function<bool(const shard_id&, std::size_t)> never_due_;
    std::map<shard_id, shard_book> shards_;
    repeats counted_;
};

}  // namespace millrace::sim
