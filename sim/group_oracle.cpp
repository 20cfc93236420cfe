#include "group_oracle.hpp"

#include <algorithm>
#include <optional>

namespace millrace::sim {

namespace {

std::size_t index_of(const stored_shard& shard, const position& at) {
    const auto found = std::partition_point(shard.records.begin(), shard.records.end(), [&](const auto& r) {
        return r.position < at;
    });
    return static_cast<std::size_t>(found - shard.records.begin());
}

std::string text(const std::optional<checkpoint>& at) {
    return at ? at->position.sequence.to_string() + "." + std::to_string(at->position.sub_sequence) : "-";
}

}  // namespace

group_oracle::group_oracle(
    scheduler& world,
    trace& t,
    verdicts& v,
    const lease_table& table,
    fake_stream& stream,
    const health_book& health
)
    : world_(world),
      trace_(t),
      verdicts_(v),
      table_(table),
      stream_(stream),
      book_(world, v, health, [this](const shard_id& shard, std::size_t index) {
          return exempt(state_of(shard), index);
      }) {}

group_oracle::shard_state& group_oracle::state_of(const shard_id& shard) {
    auto& state = shards_[shard];
    if (state.shard == nullptr) {
        for (const auto& candidate : stream_.shards())
            if (candidate->listed.shard == shard) state.shard = candidate.get();
    }
    if (state.shard != nullptr && state.handed.size() < state.shard->records.size()) {
        state.handed.resize(state.shard->records.size());
        state.acknowledged.resize(state.shard->records.size());
        state.done.resize(state.shard->records.size());
        state.acknowledged_at.resize(state.shard->records.size());
    }
    return state;
}

void group_oracle::appended(const stored_shard& shard, const stored_record& record) {
    trace_.say(
        "stream",
        "{} {}.{} key {}",
        shard.listed.shard.value(),
        record.position.sequence.to_string(),
        record.position.sub_sequence,
        record.key.value_or("-")
    );
    auto& state = state_of(shard.listed.shard);
    if (record.key) keys_[*record.key].records.emplace_back(&state, shard.records.size() - 1);
}

bool group_oracle::before_start(const shard_state& state, std::size_t index) const {
    const auto* row = table_.find(std::monostate{});
    if (row == nullptr) return false;
    // A shard with parents, too, may have been there when the group began; one born later holds nothing
    // older.
    const auto& start = std::get<group_row>(*row).start_at;
    return start && wall_at(state.shard->records[index].arrived) < *start;
}

bool group_oracle::exempt(const shard_state& state, std::size_t index) const {
    return index < state.shard->trimmed || before_start(state, index);
}

std::size_t group_oracle::settle(shard_state& state) {
    while (state.settled < state.done.size() &&
           (state.done[state.settled] != 0 || exempt(state, state.settled)))
        ++state.settled;
    return state.settled;
}

void group_oracle::row_changed(const std::string& client, const lease_row* before, const lease_row* after) {
    const auto* row = after != nullptr ? after : before;
    if (const auto* shard = std::get_if<shard_row>(row)) {
        if (after != nullptr) {
            trace_.say(
                client,
                "row {} v{} epoch {} owner {} at {}{}",
                shard->shard.value(),
                shard->version.value(),
                shard->epoch.value(),
                shard->owner.value().empty() ? "-" : shard->owner.value(),
                text(shard->checkpoint),
                shard->finished_at ? " finished" : ""
            );
        }
        shard_changed(
            before != nullptr ? &std::get<shard_row>(*before) : nullptr,
            after != nullptr ? &std::get<shard_row>(*after) : nullptr
        );
    } else if (std::holds_alternative<worker_row>(*row)) {
        worker_changed(
            client,
            before != nullptr ? &std::get<worker_row>(*before) : nullptr,
            after != nullptr ? &std::get<worker_row>(*after) : nullptr
        );
    }
}

void group_oracle::shard_changed(const shard_row* before, const shard_row* after) {
    if (after == nullptr) {
        if (!before->finished_at) verdicts_.broken("row of unfinished {} was deleted", before->shard.value());
        if (stream_.find(before->shard) != nullptr)
            verdicts_.broken("row of {} was deleted while the stream lists it", before->shard.value());
        return;
    }
    auto& state = state_of(after->shard);
    const auto name = after->shard.value();
    if (after->write_id == write_id{} || !write_ids_.insert(after->write_id).second)
        verdicts_.broken("{}: a write bears a write id that is not its own", name);
    if (after->epoch < state.highest)
        verdicts_.broken("{}: epoch fell from {} to {}", name, state.highest.value(), after->epoch.value());
    if (before != nullptr && after->version.value() != before->version.value() + 1)
        verdicts_.broken(
            "{}: version went from {} to {}", name, before->version.value(), after->version.value()
        );
    const auto changes_owner = before == nullptr || before->owner != after->owner;
    if (!after->owner.value().empty() && changes_owner) {
        if (after->epoch <= state.highest)
            verdicts_.broken("{}: a new owner under epoch {}, used before", name, after->epoch.value());
        if (before != nullptr && !before->owner.value().empty() && table_.find(before->owner) != nullptr &&
            !ended_.contains(before->owner))
            verdicts_.broken("{}: taken while the session of its owner stands", name);
        check_parents(after->shard, after->parents);
    }
    state.highest = std::max(state.highest, after->epoch);
    if (before != nullptr && before->finished_at && !after->finished_at)
        verdicts_.broken("{}: no longer finished", name);
    check_checkpoint(before, *after);
    if (before != nullptr) account(before, *after);
}

// A grant is over when its epoch or its owner is no longer in the row.
void group_oracle::account(const shard_row* before, const shard_row& after) {
    const auto& state = state_of(after.shard);
    const auto same = after.epoch == before->epoch && after.owner == before->owner;
    if (state.shard == nullptr || (same && !after.finished_at)) return;
    const auto written = after.checkpoint ? index_of(*state.shard, after.checkpoint->position) + 1 : 0;
    auto how = delivery_book::ending::taken_away;
    if (after.finished_at)
        how = delivery_book::ending::finished;
    else if (after.epoch == before->epoch && after.owner.value().empty())
        how = delivery_book::ending::released;
    book_.ended(after.shard, how, written);
}

void group_oracle::check_checkpoint(const shard_row* before, const shard_row& after) {
    auto& state = state_of(after.shard);
    if (state.shard == nullptr) return;
    const auto name = after.shard.value();
    if (before != nullptr && before->checkpoint) {
        if (!after.checkpoint || after.checkpoint->position < before->checkpoint->position)
            verdicts_.broken("{}: checkpoint went back to {}", name, text(after.checkpoint));
    }
    const auto settled = settle(state);
    const auto& records = state.shard->records;
    if (after.checkpoint && settled < records.size() &&
        after.checkpoint->position >= records[settled].position) {
        verdicts_.broken(
            "{}: checkpoint {} passes the unacknowledged {}.{}",
            name,
            text(after.checkpoint),
            records[settled].position.sequence.to_string(),
            records[settled].position.sub_sequence
        );
    }
    if (after.finished_at && (before == nullptr || !before->finished_at)) {
        if (!state.shard->listed.closed && !state.shard->expired)
            verdicts_.broken("{}: finished while it is open", name);
        if (settled < records.size() && !state.shard->expired)
            verdicts_.broken("{}: finished with {} records open", name, records.size() - settled);
    }
}

void group_oracle::check_parents(const shard_id& shard, const std::vector<shard_id>& known) {
    const auto& state = state_of(shard);
    const auto& parents = state.shard != nullptr ? state.shard->listed.parents : known;
    for (const auto& parent : parents) {
        if (stream_.find(parent) == nullptr) continue;
        const auto* row = table_.find(parent);
        if (row == nullptr || !std::get<shard_row>(*row).finished_at)
            verdicts_.broken("{}: started before its parent {} was finished", shard.value(), parent.value());
    }
}

void group_oracle::worker_changed(
    const std::string& client, const worker_row* before, const worker_row* after
) {
    if (after != nullptr) {
        if (before == nullptr)
            trace_.say(client, "registers {} as {}", after->worker.value(), after->incarnation.value());
        if (before != nullptr && before->write_id == after->write_id)
            verdicts_.broken("{}: two heartbeats bear the same write id", after->incarnation.value());
        heartbeats_[after->incarnation] = world_.now();
        return;
    }
    ended_.insert(before->incarnation);
    trace_.say(client, "ends the session {} of {}", before->incarnation.value(), before->worker.value());
    const auto own = client == before->process.host + "/" + std::to_string(before->process.pid);
    if (own || (gone && gone(before->process))) return;
    // An observer counts on its own clock, which may run faster than the world's.
    const auto silent = world_.now() - heartbeats_[before->incarnation];
    const auto least = before->lease - before->lease / 1'000'000 * (drift_per_million + 1);
    if (silent < least) {
        verdicts_.broken(
            "the session {} was ended after {} ms of silence, its lease is {} ms",
            before->incarnation.value(),
            silent / 1ms,
            before->lease / 1ms
        );
    }
}

void group_oracle::handling(
    const std::string& who, const shard_id& shard, epoch e, std::uint32_t attempt, const record_batch& batch
) {
    auto& state = state_of(shard);
    const auto records = batch.records();
    const auto* row = table_.find(shard);
    if (records.empty() || row == nullptr || state.shard == nullptr) {
        verdicts_.broken("{}: a handler call without records, row or shard", shard.value());
        return;
    }
    const auto first = index_of(*state.shard, records.front().position);
    trace_.say(
        who,
        "handles {} [{}..{}] epoch {} attempt {}",
        shard.value(),
        first,
        first + records.size() - 1,
        e.value(),
        attempt
    );
    const auto& lease = std::get<shard_row>(*row);
    if (lease.epoch != e || lease.owner.value().empty()) {
        verdicts_.broken(
            "{}: {} handles under epoch {}, the lease has epoch {} and {} owner",
            shard.value(),
            who,
            e.value(),
            lease.epoch.value(),
            lease.owner.value().empty() ? "no" : "an"
        );
    }
    check_parents(shard, lease.parents);
    if (state.granted != e) {
        state.granted = e;
        state.begin = lease.checkpoint ? index_of(*state.shard, lease.checkpoint->position) + 1 : 0;
        state.next = state.begin;
    }
    while (state.next < first && exempt(state, state.next))
        ++state.next;
    if (first > state.next || (attempt == 1 && first < state.next)) {
        verdicts_.broken(
            "{}: {} is given record {} at attempt {}, {} was next",
            shard.value(),
            who,
            first,
            attempt,
            state.next
        );
    }
    auto index = first;
    for (const auto& record : records) {
        // A later attempt may leave out what was acknowledged, or is still under way, since the first, and
        // what was trimmed between two records that failed.
        while (attempt > 1 && index < state.handed.size() &&
               (state.handed[index] != 0 || exempt(state, index)) &&
               state.shard->records[index].position != record.position)
            ++index;
        if (index >= state.handed.size() || state.shard->records[index].position != record.position) {
            verdicts_.broken("{}: a batch leaves out or invents record {}", shard.value(), index);
            return;
        }
        check_key_order(state, index);
        book_.handed(shard, e, who, state.begin, index);
        repeated_ += state.handed[index];
        state.handed[index] = 1;
        ++handed_;
        ++index;
    }
    state.next = std::max(state.next, index);
}

void group_oracle::check_key_order(shard_state& state, std::size_t index) {
    const auto& record = state.shard->records[index];
    if (!record.key || state.handed[index] != 0) return;
    auto& key = keys_[*record.key];
    while (key.handed < key.records.size()) {
        const auto& [shard, at] = key.records[key.handed];
        if (shard == &state && at == index) break;
        if (shard->handed.size() <= at || (shard->handed[at] == 0 && !exempt(*shard, at))) break;
        ++key.handed;
    }
    if (key.handed < key.records.size()) {
        const auto& [shard, at] = key.records[key.handed];
        if (shard != &state || at != index) {
            verdicts_.broken(
                "key {}: record {} of {} before record {} of {}",
                *record.key,
                index,
                state.shard->listed.shard.value(),
                at,
                shard->shard->listed.shard.value()
            );
        }
    }
}

void group_oracle::failed(const shard_id& shard, epoch e, const position& at) {
    const auto& state = state_of(shard);
    if (state.shard != nullptr) book_.failed(shard, e, index_of(*state.shard, at));
}

void group_oracle::done(const shard_id& shard, const position& at) {
    auto& state = state_of(shard);
    if (state.shard == nullptr) return;
    const auto index = index_of(*state.shard, at);
    if (index < state.done.size()) state.done[index] = 1;
}

void group_oracle::acknowledged(const shard_id& shard, epoch e, const position& at) {
    auto& state = state_of(shard);
    if (state.shard == nullptr) return;
    const auto index = index_of(*state.shard, at);
    trace_.say("handler", "acknowledges {} [{}] epoch {}", shard.value(), index, e.value());
    done(shard, at);
    book_.acknowledged(shard, e, index);
    if (index >= state.acknowledged.size() || state.acknowledged[index] != 0) return;
    state.acknowledged[index] = 1;
    state.acknowledged_at[index] = world_.now();
}

std::string group_oracle::lagging(nanoseconds age) const {
    for (const auto& [id, state] : shards_) {
        if (state.shard == nullptr || stream_.sick.contains(id)) continue;
        for (std::size_t i = 0; i < state.handed.size(); ++i) {
            if (state.shard->records[i].visible + age < world_.now() && state.handed[i] == 0 &&
                !exempt(state, i))
                return fmt::format("record {} of {} waits", i, id.value());
        }
    }
    return {};
}

std::string group_oracle::unwritten(nanoseconds age) const {
    for (const auto& [id, state] : shards_) {
        const auto* row = table_.find(id);
        if (row == nullptr || state.shard == nullptr || state.shard->expired) continue;
        const auto& written = std::get<shard_row>(*row).checkpoint;
        auto i = written ? index_of(*state.shard, written->position) + 1 : 0;
        world_time since{0};  // when the last of those up to here was acknowledged
        // A record that was trimmed after it was handed over is still in memory, and still holds the
        // checkpoint back.
        const auto passed = [&state = state, this](std::size_t at) {
            return state.acknowledged[at] != 0 || (exempt(state, at) && state.handed[at] == 0);
        };
        for (; i < state.acknowledged.size() && passed(i); ++i) {
            since = std::max(since, state.acknowledged_at[i]);
            if (state.acknowledged[i] != 0 && since + age < world_.now())
                return fmt::format(
                    "record {} of {} is acknowledged and not below the checkpoint", i, id.value()
                );
        }
    }
    return {};
}

void group_oracle::effect(const shard_id& shard, const position& at) {
    if (effects_.emplace(shard, at).second) return;
    verdicts_.broken(
        "{}: the effects of {}.{} are there twice", shard.value(), at.sequence.to_string(), at.sub_sequence
    );
}

std::string group_oracle::missing() const {
    for (const auto& stored : stream_.shards()) {
        if (stored->expired) continue;
        const auto& id = stored->listed.shard;
        const auto found = shards_.find(id);
        for (std::size_t i = 0; i < stored->records.size(); ++i) {
            const auto done = found != shards_.end() && i < found->second.acknowledged.size() &&
                              (found->second.acknowledged[i] != 0 || exempt(found->second, i));
            if (!done) return fmt::format("record {} of {} was not handled", i, id.value());
        }
        const auto* row = table_.find(id);
        if (row == nullptr) return fmt::format("{} has no row", id.value());
        const auto& lease = std::get<shard_row>(*row);
        if (stored->listed.closed && !lease.finished_at) return fmt::format("{} is not finished", id.value());
        if (!stored->records.empty() && found != shards_.end() && !stored->listed.closed) {
            const auto last = stored->records.size() - 1;
            const auto wanted = !exempt(found->second, last);
            if (wanted && (!lease.checkpoint || lease.checkpoint->position < stored->records.back().position))
                return fmt::format("the checkpoint of {} is not at its last record", id.value());
        }
    }
    return {};
}

}  // namespace millrace::sim
