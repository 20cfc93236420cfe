// The stream was deleted and made again under its name: the old checkpoints mean nothing in it.
//
// Nobody takes a shard while the group row names another stream than the listing. Rows are listed *before*
// the group row is read, and the stream is listed *after* it: if that still shows another stream, the group
// row's is gone (the other way round, a worker that slept would take the new stream for the old one), every
// row of the listing is of the old one, and conditional writes see to it that it still is. Only when all are
// set aside does the group row name the new stream, so a crash in between is taken up by whoever comes next.
// Where the youngest listing shows a stream of another place, or an older one, it is this worker that looks
// at the wrong one: it writes nothing and ends.
#include "group/coordinator.hpp"
#include "group/stream_identity.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

bool of_use(const shard_row& row) {
    return row.checkpoint || row.finished_at || !row.owner.value().empty();
}

}  // namespace

bool coordinator::is_of_stream(const group_row& row) const {
    return relation_of(row.stream_identity, stream_->identity) == stream_relation::same;
}

void coordinator::notice_recreated() {
    if (failed_ || recreated_.now != recreation::none || row_list_.begun) return;
    for (const auto& shard : active_leases())
        step_lease(
            shard,
            lease_machine::session_over{
                {errc::not_owner,
                 retry_advice::never,
                 false,
                 "the stream is not the one that the group has checkpoints of"}}
        );
    recreated_.now = recreation::listing;
    row_list_.begun = steps_;
    actions_.emplace_back(list_rows{});
}

void coordinator::recreated_rows_listed(const std::vector<shard_row>& rows) {
    if (trouble_.rows) {  // it would keep its old checkpoint; noticed again by a tick
        recreated_.now = recreation::none;
        return;
    }
    recreated_.rows = rows;
    recreated_.now = recreation::reading;
    read_group_row();
}

void coordinator::recreated_group_read() {
    const bool gone =
        group_->stream_identity == recreated_.outdated && stream_->identity != recreated_.outdated;
    if (gone) return set_aside();
    recreated_.now = recreation::looking;
    recreated_.looking_since = steps_;
    stream_list_.wanted = true;
}

void coordinator::recreated_stream_listed(step_count begun) {
    if (begun < recreated_.looking_since) return;
    const auto relation = relation_of(group_->stream_identity, stream_->identity);
    if (relation != stream_relation::remade) {
        recreated_.now = recreation::none;
        row_list_.wanted = true;
        if (relation == stream_relation::other)
            fail_for_good(other_stream(group_->stream_identity, stream_->identity));
        return;
    }
    recreated_.outdated = group_->stream_identity;
    tell(
        log_level::warning,
        "stream.recreated",
        "stream",
        stream_->identity,
        fmt::format(
            "the stream was made anew (it was \"{}\"); the old checkpoints are set aside and every shard is "
            "read from its start position",
            *recreated_.outdated
        )
    );
    set_aside();
}

void coordinator::set_aside() {
    constexpr std::size_t at_once = 64;
    bool held = false;
    recreated_.setting_aside.clear();
    for (const auto& row : recreated_.rows) {
        if (!of_use(row)) continue;
        const bool live =
            !row.owner.value().empty() && row.owner != mine_ && workers_.sessions.contains(row.owner);
        held = held || live;
        if (live || recreated_.setting_aside.size() == at_once) continue;
        auto next = row;
        next.owner = incarnation{};
        next.epoch = epoch{std::max(epoch_above(), row.epoch).value() + 1};
        next.version = version{row.version.value() + 1};
        next.write_id = write_id{random_()};
        next.checkpoint.reset();
        next.finished_at.reset();
        if (row.checkpoint) {
            tell(
                log_level::info,
                "checkpoint.set_aside",
                "shard",
                row.shard.value(),
                row.checkpoint->position.sequence.to_string()
            );
        }
        recreated_.setting_aside.insert(row.shard);
        actions_.emplace_back(set_row_aside{std::move(next), row.version});
    }
    row_list_.wanted = true;
    if (!recreated_.setting_aside.empty()) {
        recreated_.now = recreation::writing;
    } else if (!held) {
        switch_group_row();
    } else {
        // A live worker still holds some: it notices by itself. A tick looks again.
        recreated_.now = recreation::none;
    }
}

void coordinator::switch_group_row() {
    recreated_.now = recreation::switching;
    auto next = *group_;
    next.stream_identity = stream_->identity;
    write_group_row(std::move(next), group_->version);
}

void coordinator::on(const row_set_aside& reply) {
    recreated_.setting_aside.erase(reply.row.shard);
    if (reply.outcome) {
        table_.put(reply.row, steps_);
    } else if (reply.outcome.error().code != errc::conflict) {
        recreated_.aside_failed = true;
        tell_failure("checkpoint.set_aside_failed", "shard", reply.row.shard.value(), reply.outcome.error());
    }
    if (!recreated_.setting_aside.empty() || recreated_.now != recreation::writing) return;
    recreated_.now = recreation::none;
    // At once would turn as fast as the store fails; a tick goes on.
    if (!std::exchange(recreated_.aside_failed, false)) notice_recreated();
}

}  // namespace millrace
