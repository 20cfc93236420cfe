#include "schema_sink.hpp"

#include "relay/lane.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace millrace::schema {

namespace {

error purged_error() {
    return {errc::purged, retry_advice::now, false, "an earlier row of the same channel was refused"};
}

bool by_id(const row_failure& a, const row_failure& b) {
    return a.id < b.id;
}

/// Rows that were made here, with those that they were made of.
struct coded_rows {
    row_batch rows;
    std::vector<std::shared_ptr<const row_batch>> originals;
};

}  // namespace

struct schema_sink::coded_request {
    std::vector<outgoing_row> rows;
    std::vector<row_failure> failures;
    std::size_t bytes{0};
};

schema_sink::schema_sink(
    host& home,
    std::unique_ptr<event_sink> inner,
    std::shared_ptr<row_coder> coder,
    schema_sink_options options
)
    : home_(home), coder_(std::move(coder)), options_(options), inner_(std::move(inner)) {}

schema_sink::~schema_sink() {
    if (give_up_) home_.cancel(*give_up_);
}

std::optional<error> schema_sink::suspect(const outbox_row& row) const {
    if (!row.malformed.empty()) return inner_->suspect(row);
    switch (coder_->look(row)) {
        case row_coder::state::awaited:
            return error{
                errc::unavailable, retry_advice::after_delay, false, "the schema of the row is asked for"};
        case row_coder::state::refused:
            return error{
                errc::refused_topic, retry_advice::after_delay, false, "there is no schema for the row"};
        case row_coder::state::untouched:
        case row_coder::state::ready:
            break;
    }
    return inner_->suspect(row);
}

bool schema_sink::awaits(const outbox_row& row) const {
    return (row.malformed.empty() && coder_->look(row) == row_coder::state::awaited) || inner_->awaits(row);
}

void schema_sink::watch(std::function<void()> changed) {
    coder_->watch(alive_.guard(changed));
    inner_->watch(std::move(changed));
}

schema_sink::coded_request schema_sink::code(channel where, const std::vector<outgoing_row>& rows) {
    coded_request out;
    out.rows.reserve(rows.size());
    const auto made = std::make_shared<coded_rows>();
    made->rows.reserve(rows.size());
    const std::shared_ptr<const row_batch> batch(made, &made->rows);
    std::unordered_set<lane_ref, lane_hash> stopped;
    const auto refuse = [&](const outbox_row& row, error why, bool shared_blame) {
        const bool of_topic = why.code == errc::refused_topic;
        out.failures.push_back({row.id, std::move(why), shared_blame, of_topic, true});
        stopped.insert(lane_ref(row));
    };
    for (const auto& each : rows) {
        const auto& row = *each.row;
        const bool full = coded_bytes_ > 0 && coded_bytes_ + made->rows.bytes() > options_.coded_bytes_max;
        if (full || (!stopped.empty() && stopped.contains(lane_ref(row)))) {
            refuse(row, purged_error(), false);
            continue;
        }
        auto coded = coder_->code(row, made->rows);
        if (!coded) {
            if (coded.error().code == errc::refused_record) ++counters_.refused;
            refuse(row, std::move(coded.error()), false);
            continue;
        }
        const bool same = coded->value.has_value() == row.value.has_value() &&
                          (!row.value || coded->value->data() == row.value->data()) &&
                          (!row.key || coded->key->data() == row.key->data()) &&
                          coded->headers.data() == row.headers.data();
        if (same) {
            out.rows.push_back(each);
            continue;
        }
        // Only now is it known that it has grown, or where its key leads.
        const bool looks_other = coded->bytes() > row.bytes() || coded->key != row.key;
        if (auto why = where == channel::main && looks_other ? inner_->suspect(*coded) : std::nullopt) {
            refuse(row, std::move(*why), true);
            continue;
        }
        ++counters_.coded;
        made->rows.add(*coded);
        if (made->originals.empty() || made->originals.back() != each.batch)
            made->originals.push_back(each.batch);
        out.rows.push_back({&made->rows.rows().back(), batch});
    }
    out.bytes = made->rows.rows().empty() ? 0 : made->rows.bytes();
    return out;
}

void schema_sink::publish(
    channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done
) {
    if (where == channel::main && stopped_) {
        publish_outcome outcome;
        for (const auto& each : rows)
            outcome.failures.push_back(
                {.id = each.row->id,
                 .why = purged_error(),
                 .shared_blame = false,
                 .of_topic = false,
                 .early = true}
            );
        return tell(std::move(done), std::move(outcome));
    }
    auto coded = code(where, rows);
    if (where == channel::main && !coded.failures.empty()) stopped_ = true;
    if (coded.rows.empty()) return tell(std::move(done), {std::move(coded.failures)});
    hand_over(where, std::move(coded), mine, std::move(done));
}

void schema_sink::hand_over(channel where, coded_request what, epoch mine, completion<publish_outcome> done) {
    coded_bytes_ += what.bytes;
    if (where == channel::main) ++on_main_;
    if (what.failures.empty()) {
        inner_->publish(
            where,
            std::move(what.rows),
            mine,
            alive_.guard(
                [this, where, bytes = what.bytes, done = std::move(done)](result<publish_outcome> outcome) {
                    ended(where, bytes, outcome);
                    done(std::move(outcome));
                }
            )
        );
        return;
    }
    std::vector<row_id> ids;
    ids.reserve(what.rows.size());
    for (const auto& each : what.rows)
        ids.push_back(each.row->id);
    inner_->publish(
        where,
        std::move(what.rows),
        mine,
        alive_.guard([this, where, bytes = what.bytes, ids, ours = std::move(what.failures), done](
                         const result<publish_outcome>& outcome
                     ) {
            ended(where, bytes, outcome);
            publish_outcome all{ours};
            if (outcome) {
                all.failures.insert(all.failures.end(), outcome->failures.begin(), outcome->failures.end());
            } else {
                for (const auto id : ids)
                    all.failures.push_back({id, outcome.error(), true});
            }
            std::sort(all.failures.begin(), all.failures.end(), by_id);
            done(std::move(all));
        })
    );
}

void schema_sink::ended(channel where, std::size_t bytes, const result<publish_outcome>& outcome) {
    coded_bytes_ -= bytes;
    if (where != channel::main) return;
    --on_main_;
    if (!outcome || !outcome->failures.empty()) inner_stopped_ = true;
    if (resets_.empty() || resetting_inner_) return;
    if (inner_stopped_) {
        reset_inner();
    } else if (on_main_ == 0) {
        finish_resets({});
    }
}

// A row that was refused here has not harmed the inner main: what that holds is let come to its end.
void schema_sink::reset_main(completion<void> done) {
    resets_.push_back(std::move(done));
    if (resetting_inner_) return;
    if (inner_stopped_ || !stopped_) return reset_inner();
    if (on_main_ == 0) return finish_resets({});
    if (give_up_) return;
    give_up_ = home_.call_at(home_.now() + options_.settle_limit, [this] {
        give_up_.reset();
        if (!resets_.empty() && !resetting_inner_) reset_inner();
    });
}

void schema_sink::reset_inner() {
    resetting_inner_ = true;
    inner_->reset_main(alive_.guard([this](const result<void>& outcome) {
        resetting_inner_ = false;
        if (outcome) inner_stopped_ = false;
        finish_resets(outcome);
    }));
}

void schema_sink::finish_resets(const result<void>& outcome) {
    if (give_up_) home_.cancel(*std::exchange(give_up_, std::nullopt));
    if (outcome) stopped_ = false;
    for (auto& done : std::exchange(resets_, {}))
        home_.post([done = std::move(done), outcome] { done(outcome); });
}

void schema_sink::purge(completion<void> done) {
    inner_->purge(alive_.guard([this, done = std::move(done)](const result<void>& outcome) {
        if (outcome) stopped_ = inner_stopped_ = false;
        done(outcome);
    }));
}

void schema_sink::tell(completion<publish_outcome> done, publish_outcome outcome) {
    home_.post([done = std::move(done), outcome = std::move(outcome)] { done(outcome); });
}

}  // namespace millrace::schema
