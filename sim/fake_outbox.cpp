#include "fake_outbox.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace::sim {

namespace {

void copy_row(row_batch& batch, const stored_row& row) {
    std::vector<record_header> headers;
    for (const auto& h : row.event.headers) {
        headers.push_back({batch.store(h.name), h.value ? std::optional(batch.store(*h.value)) : std::nullopt}
        );
    }
    const auto stored = [&](const std::optional<std::string>& bytes) {
        return bytes ? std::optional(batch.store(*bytes)) : std::nullopt;
    };
    batch.add(
        {row.id,
         batch.store(row.event.topic),
         stored(row.event.key),
         stored(row.event.value),
         batch.store(std::move(headers)),
         row.event.partition,
         row.created_at,
         batch.store(row.malformed)}
    );
}

// The statements of one round, each with a snapshot of its own.
struct fetch_round : std::enable_shared_from_this<fetch_round> {
    outbox_table& table;
    scheduler& world;
    fetch_request request;
    nanoseconds pause;
    std::function<void(result<fetch_reply>)> finish;
    fetch_reply reply;

    fetch_round(
        outbox_table& t,
        scheduler& w,
        fetch_request r,
        nanoseconds p,
        std::function<void(result<fetch_reply>)> f
    )
        : table(t), world(w), request(std::move(r)), pause(p), finish(std::move(f)) {}

    template <class F>
    void later(F what) {
        world.at(world.now() + pause, [self = shared_from_this(), what] { what(*self); });
    }

    void start() {
        reply.ahead = table.read_ahead(request, reply.more);
        later([](fetch_round& round) { round.probe(); });
    }
    void probe() {
        reply.filled = table.read_gaps(request, reply.gaps_more);
        later([](fetch_round& round) {
            round.reply.knows_writers = round.request.wants_writers;
            if (round.reply.knows_writers) round.reply.writers = round.table.writers();
            // Last, as the real ones: what ends a pause while the rows are read shows with them.
            round.reply.table_identity = round.table.identity();
            round.reply.replay_generation = round.table.generation();
            round.reply.drawn = round.table.drawn();
            round.reply.paused.assign(round.table.paused().begin(), round.table.paused().end());
            round.finish(std::move(round.reply));
        });
    }
};

}  // namespace

lane_key lane_of(const stored_row& row) {
    return {row.event.topic, row.event.key, row.event.partition};
}

row_id outbox_table::draw(transaction writer, bool ahead) {
    if (!ahead) open_[writer].locks_table = true;
    return row_id{next_id_++};
}

void outbox_table::insert(transaction writer, row_id id, event what, std::string malformed) {
    auto& open = open_[writer];
    open.locks_table = true;
    open.rows.push_back({id, std::move(what), wall_at(world_.now()), std::move(malformed)});
}

void outbox_table::commit(transaction writer) {
    const auto open = open_.extract(writer);
    if (open.empty()) return;
    for (auto& row : open.mapped().rows) {
        tell(change::committed, row);
        rows_.insert_or_assign(row.id, std::move(row));
    }
    changed_rows();
}

void outbox_table::roll_back(transaction writer) {
    open_.erase(writer);
}

row_id outbox_table::put(event what, std::string malformed) {
    const auto writer = begin();
    const auto id = draw(writer);
    insert(writer, id, std::move(what), std::move(malformed));
    commit(writer);
    return id;
}

std::size_t outbox_table::replay(const lane_key& lane) {
    std::size_t moved = 0;
    std::erase_if(dead_, [&](dead_row& dead) {
        if (lane_of(dead.row) != lane) return false;
        tell(change::replayed, dead.row);
        rows_.insert_or_assign(dead.row.id, std::move(dead.row));
        ++moved;
        return true;
    });
    parked_.erase(lane);
    ++generation_;
    changed_rows();
    return moved;
}

std::size_t outbox_table::drop(const lane_key& lane) {
    const auto dropped = std::erase_if(dead_, [&](const dead_row& dead) {
        if (lane_of(dead.row) != lane) return false;
        tell(change::dropped, dead.row);
        return true;
    });
    parked_.erase(lane);
    ++generation_;
    changed_rows();
    return dropped;
}

std::shared_ptr<const row_batch> outbox_table::read_ahead(const fetch_request& request, bool& more) const {
    auto batch = std::make_shared<row_batch>();
    more = false;
    for (auto at = rows_.upper_bound(request.after); at != rows_.end(); ++at) {
        if (held_back(at->second)) continue;
        const auto read = batch->rows().size();
        if (read >= request.rows_max || (read > 0 && batch->bytes() >= request.bytes_max)) {
            more = true;
            break;
        }
        copy_row(*batch, at->second);
    }
    return batch;
}

std::shared_ptr<const row_batch> outbox_table::read_gaps(const fetch_request& request, bool& more) const {
    auto batch = std::make_shared<row_batch>();
    more = false;
    for (const auto& gap : request.gaps) {
        for (auto at = rows_.lower_bound(gap.first); at != rows_.end() && at->first <= gap.last; ++at) {
            if (held_back(at->second)) continue;
            if (!batch->rows().empty() && batch->bytes() >= request.gap_bytes_max) {
                more = true;
                return batch;
            }
            copy_row(*batch, at->second);
        }
    }
    return batch;
}

std::vector<std::uint64_t> outbox_table::writers() const {
    std::vector<std::uint64_t> holders;
    for (const auto& [id, open] : open_)
        if (open.locks_table) holders.push_back(id);
    return holders;
}

std::uint64_t outbox_table::remove(const std::vector<id_range>& delivered) {
    std::uint64_t deleted = 0;
    for (const auto& range : delivered) {
        auto at = rows_.lower_bound(range.first);
        while (at != rows_.end() && at->first <= range.last) {
            tell(change::deleted, at->second);
            at = rows_.erase(at);
            ++deleted;
        }
    }
    return deleted;
}

outbox_start outbox_table::start() const {
    outbox_start from;
    from.parked.assign(parked_.begin(), parked_.end());
    if (hint_.table_identity == identity() && hint_.replay_generation == generation_)
        from.low_water = hint_.low_water;
    from.table_identity = identity();
    from.replay_generation = generation_;
    return from;
}

result<void> outbox_table::bury(const bury_request& request, epoch mine) {
    if (!owned_under(mine)) {
        return fail(errc::not_owner, "the outbox's lease is held under another epoch; nothing was moved");
    }
    if (request.when == bury_request::condition::park_lane) {
        if (!request.lane.key) {
            return fail(errc::invalid_argument, "a row without a key has no lane to be parked");
        }
        parked_.insert(request.lane);
    }
    if (request.when == bury_request::condition::lane_is_parked && !parked_.contains(request.lane)) {
        return fail(errc::conflict, "the lane is no longer parked; nothing was moved");
    }
    for (const auto& id : request.rows) {
        const auto found = rows_.find(id);
        if (found == rows_.end()) continue;
        tell(change::buried, found->second);
        dead_.push_back(
            {std::move(found->second), request.reason, request.detail, request.attempts, request.tried_for}
        );
        rows_.erase(found);
    }
    return {};
}

void outbox_table::watch(std::weak_ptr<const char> token, std::function<void()> changed) {
    std::erase_if(watchers_, [](const auto& w) { return w.token.expired(); });
    watchers_.push_back({std::move(token), std::move(changed)});
}

void outbox_table::changed_rows() {
    if (!signals_) return;
    for (const auto& w : watchers_) {
        world_.at(world_.now(), [w] {
            if (!w.token.expired()) w.changed();
        });
    }
}

void fake_outbox::fetch(fetch_request request, completion<fetch_reply> done) {
    const auto pause = link_.latency();
    link_.ask_slowly<fetch_reply>(
        "fetch",
        [&table = table_, &world = link_.world(), request = std::move(request), pause](auto finish) {
            std::make_shared<fetch_round>(table, world, request, pause, std::move(finish))->start();
        },
        [this, done = std::move(done)](result<fetch_reply> reply) {
            if (reply) generation_seen_ = reply->replay_generation;
            done(std::move(reply));
        }
    );
}

void fake_outbox::remove(
    std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done
) {
    // At READ COMMITTED the epoch in a DELETE is no fence: sometimes a zombie's passes.
    const auto passes = link_.random().chance(50);
    // Not every mark is remembered, but one that must not be used any more is.
    const auto remembers = mark.low_water == row_id{} || link_.random().chance(50);
    outbox_start hint{{}, mark.low_water, std::move(mark.table_identity), generation_seen_};
    link_.change<std::uint64_t>(
        "remove",
        [&table = table_, hint = std::move(hint), delivered = std::move(delivered), mine, passes, remembers](
        ) -> result<std::uint64_t> {
            const auto owner = table.owned_under(mine);
            if (!owner && !passes && !delivered.empty()) {
                return fail(
                    errc::not_owner, "the outbox's lease is held under another epoch; nothing was deleted"
                );
            }
            if (hint.table_identity != table.identity() || (!owner && !passes)) return 0;
            if (owner && remembers) table.remember(hint);
            return table.remove(delivered);
        },
        std::move(done)
    );
}

void fake_outbox::bury(bury_request request, epoch mine, completion<void> done) {
    link_.change<void>(
        "bury",
        [&table = table_, request = std::move(request), mine]() -> result<void> {
            if (request.table_identity != table.identity())
                return fail(errc::not_owner, "the outbox was made anew; nothing was moved");
            return table.bury(request, mine);
        },
        std::move(done)
    );
}

void fake_outbox::start(completion<outbox_start> done) {
    const auto forgets = link_.random().chance(20);
    link_.ask<outbox_start>(
        "start",
        [&table = table_, forgets]() -> result<outbox_start> {
            auto from = table.start();
            if (forgets) from.low_water = {};
            return from;
        },
        std::move(done)
    );
}

void fake_outbox::watch(std::function<void()> changed) {
    watching_.reset();
    if (!changed) return;
    watching_ = std::make_shared<const char>();
    table_.watch(watching_, [this, changed = std::move(changed)] {
        link_.client().post([token = std::weak_ptr(watching_), changed] {
            if (!token.expired()) changed();
        });
    });
}

}  // namespace millrace::sim
