#include "delivery_book.hpp"

#include <algorithm>
#include <utility>

namespace millrace::sim {

namespace {

// Requests and replies of a healthy store take so long at most; so does the way of a dead letter.
constexpr nanoseconds under_way = 400ms;

// A checkpoint that is due is written within so long when nothing is in its way.
constexpr nanoseconds patience = 1s;

}  // namespace

template <class F>
void delivery_book::each_settled(const shard_id& shard, const grant& g, F what) const {
    world_time since{0};
    for (std::size_t i = 0; i < g.entries.size(); ++i) {
        const auto& e = g.entries[i];
        if (e.handed == 0 && never_due_(shard, g.begin + i)) continue;
        if (e.acknowledged_at < 0ns) return;
        since = std::max(since, e.acknowledged_at);
        what(g.begin + i, since);
    }
}

delivery_book::entry* delivery_book::find(const shard_id& shard, epoch under, std::size_t index) {
    const auto found = shards_.find(shard);
    if (found == shards_.end()) return nullptr;
    auto& g = found->second.now;
    const auto inside = index >= g.begin && index - g.begin < g.entries.size();
    return g.under == under && inside ? &g.entries[index - g.begin] : nullptr;
}

epoch delivery_book::latest(const shard_id& shard, const std::string& who) const {
    const auto found = shards_.find(shard);
    return found != shards_.end() && found->second.now.who == who ? found->second.now.under : epoch{};
}

void delivery_book::handed(
    const shard_id& shard, epoch under, const std::string& who, std::size_t begin, std::size_t index
) {
    auto& book = shards_[shard];
    if (book.now.under != under) book.now = {under, who, begin, {}, false};
    auto& g = book.now;
    if (index < g.begin) return;  // below the checkpoint: the order oracle has said so
    if (g.entries.size() <= index - g.begin) g.entries.resize(index - g.begin + 1);
    auto& e = g.entries[index - g.begin];
    ++e.handed;
    e.handed_at = world_.now();
    e.waits = false;
    if (e.handed > 1) {
        check_retry(shard, g, index);
        counted_.count(cause::retry);
    } else {
        count_again(shard, book, index);
    }
}

void delivery_book::count_again(const shard_id& shard, shard_book& book, std::size_t index) {
    if (book.causes.size() <= index) book.causes.resize(index + 1);
    counted_.count(book.causes[index]);
    if (book.now.over)
        verdicts_.broken("{}: record {} is handled under a lease that has ended", shard.value(), index);
}

void delivery_book::check_retry(const shard_id& shard, const grant& g, std::size_t index) const {
    const auto& e = g.entries[index - g.begin];
    if (e.handed <= e.failed + 1) return;
    verdicts_.broken(
        "{}: record {} is handed over for the {}. time under one lease, and failed only {} times",
        shard.value(),
        index,
        e.handed,
        e.failed
    );
}

void delivery_book::failed(const shard_id& shard, epoch under, std::size_t index) {
    auto* e = find(shard, under, index);
    if (e == nullptr || e->acknowledged_at >= 0ns) return;
    ++e->failed;
    e->waits = true;
}

void delivery_book::acknowledged(const shard_id& shard, epoch under, std::size_t index) {
    auto* e = find(shard, under, index);
    if (e != nullptr && e->acknowledged_at < 0ns) e->acknowledged_at = world_.now();
}

void delivery_book::ended(const shard_id& shard, ending how, std::size_t written) {
    const auto found = shards_.find(shard);
    if (found == shards_.end() || (found->second.now.over && how != ending::reset)) return;
    auto& book = found->second;
    auto& g = book.now;
    const auto revoked_at = std::exchange(book.revoked_at, std::nullopt);
    const auto alive = health_.alive(g.who);
    auto why = alive ? cause::loss : cause::crash;
    if (how == ending::reset) {
        why = cause::by_operator;
        std::fill(book.causes.begin(), book.causes.end(), why);
    } else if (how == ending::released && alive) {
        why = cause::release;
        check_release(shard, g, revoked_at, written);
    } else if (how != ending::finished) {
        check_loss(shard, g, written);
    }
    book.causes.resize(std::max(book.causes.size(), g.begin + g.entries.size()));
    for (std::size_t i = 0; i < g.entries.size(); ++i)
        if (g.entries[i].handed > 0) book.causes[g.begin + i] = why;
    g.over = true;
}

// What is given back was settled first, and all of it is under the checkpoint.
void delivery_book::check_release(
    const shard_id& shard, const grant& g, std::optional<world_time> revoked_at, std::size_t written
) const {
    const auto now = world_.now();
    const auto least = bounds.drain_limit - bounds.drain_limit / 100;
    // From then on the release is on its way, and what is acknowledged comes too late for it.
    const auto limit = revoked_at ? *revoked_at + least : now;
    each_settled(shard, g, [&](std::size_t index, world_time since) {
        if (index < written || since + under_way > now || since >= limit || health_.troubled(g.who, since))
            return;
        verdicts_.broken(
            "{}: {} gave it back, and the acknowledged record {} is above its checkpoint",
            shard.value(),
            g.who,
            index
        );
    });
    for (std::size_t i = 0; i < g.entries.size(); ++i) {
        const auto& e = g.entries[i];
        // The checkpoint itself says that the driver knew of the acknowledgement before the handler's report
        // was due.
        if (g.begin + i < written) continue;
        const auto with_handler = e.handed > 0 && e.acknowledged_at < 0ns && !e.waits;
        if (!with_handler || (revoked_at && now >= limit)) continue;
        verdicts_.broken(
            "{}: {} gave it back while the handler had record {} and the drain limit had not passed",
            shard.value(),
            g.who,
            g.begin + i
        );
    }
}

// Whoever crashed, or lost the lease, leaves no more above the checkpoint than the options allow.
void delivery_book::check_loss(const shard_id& shard, const grant& g, std::size_t written) const {
    const auto end = health_.last_moment(g.who);
    std::size_t lately_due = 0;
    each_settled(shard, g, [&](std::size_t index, world_time since) {
        if (index < written || health_.troubled(g.who, since)) return;
        if (since + patience < end) ++lately_due;
        if (since + bounds.checkpoint_every + patience >= end) return;
        verdicts_.broken(
            "{}: record {} comes again, acknowledged {} ms before {} ended; checkpoints are due every {} ms",
            shard.value(),
            index,
            (end - since) / 1ms,
            g.who,
            bounds.checkpoint_every / 1ms
        );
    });
    if (lately_due > bounds.checkpoint_records)
        verdicts_.broken(
            "{}: {} acknowledged records come again after the end of {}, the cap is {}",
            shard.value(),
            lately_due,
            g.who,
            bounds.checkpoint_records
        );
    if (!health_.alive(g.who)) return;
    for (std::size_t i = 0; i < g.entries.size(); ++i) {
        const auto& e = g.entries[i];
        const auto repeats = e.handed > 0 && g.begin + i >= written;
        if (!repeats || health_.troubled(g.who, e.handed_at - bounds.lease - patience)) continue;
        verdicts_.broken(
            "{}: record {} comes again although {} lives and had no trouble",
            shard.value(),
            g.begin + i,
            g.who
        );
    }
}

}  // namespace millrace::sim
