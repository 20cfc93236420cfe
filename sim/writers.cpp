#include "writers.hpp"

#include <utility>

#include <fmt/format.h>

namespace millrace::sim {

namespace {

/// Even keys are written by one transaction at a time, which takes the key before it draws the id.
bool is_serialised(const event& what) {
    return what.key && !what.key->empty() && (what.key->back() - '0') % 2 == 0;
}

}  // namespace

writers::writers(
    scheduler& world, rng& random, outbox_table& table, relay_oracle& oracle, const scenario& plan
)
    : world_(world), random_(random), table_(table), oracle_(oracle), plan_(plan) {
    for (std::size_t i = 0; i < plan.writers.events; ++i) {
        ++open_;
        world_.at(100ms + upto(plan.writers.until), [this] { write_one(); });
    }
}

nanoseconds writers::upto(nanoseconds span) {
    return nanoseconds{
        static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(span.count()) + 1))};
}

event writers::make_event() {
    const auto& habits = plan_.writers;
    event what{.topic = "orders"};
    if (random_.chance(habits.other_topic)) what.topic = "audit";
    if (random_.chance(habits.lost_topic)) what.topic = "lost";
    if (!random_.chance(habits.keyless)) {
        const auto key = random_.below(habits.keys);
        what.key = key == 0 && random_.chance(5) ? "" : fmt::format("k{}", key);
    }
    const auto lane = what.topic + "/" + what.key.value_or("-");
    if (!random_.chance(5)) what.value = fmt::format("{}#{}", lane, ++counters_[lane]);
    if (random_.chance(20)) what.headers.push_back({"kind", std::nullopt});
    return what;
}

row_id writers::choose_id(outbox_table::transaction tx, bool serialised) {
    const auto& habits = plan_.writers;
    if (random_.chance(habits.cached_ids)) {
        const auto count = static_cast<std::int64_t>(1 + random_.below(4));
        const auto first = table_.skip_ids(count);
        for (std::int64_t i = 0; i < count; ++i)
            skipped_.push_back(row_id{first.value() + i});
    }
    if (!serialised && !skipped_.empty() && random_.chance(habits.low_ids)) {
        const auto at = skipped_.begin() + static_cast<std::ptrdiff_t>(random_.below(skipped_.size()));
        const auto id = *at;
        skipped_.erase(at);
        oracle_.sneaks_in(id);
        return id;
    }
    if (!serialised && random_.chance(habits.drawn_ahead)) {
        const auto id = table_.draw(tx, true);
        oracle_.sneaks_in(id);
        return id;
    }
    return table_.draw(tx);
}

void writers::write_one() {
    auto what = make_event();
    const auto serialised = is_serialised(what);
    const auto lock = what.key.value_or("");
    if (serialised && !busy_.insert(lock).second) {
        world_.at(world_.now() + 7ms, [this] { write_one(); });
        return;
    }
    const auto tx = table_.begin();
    const auto id = choose_id(tx, serialised);
    const auto open_for = upto(plan_.writers.open_max);
    const auto insert_at = world_.now() + upto(open_for);
    const auto commit_at = std::max(insert_at, world_.now() + open_for);
    world_.at(insert_at, [this, tx, id, what = std::move(what)] { insert(tx, id, what); });
    world_.at(commit_at, [this, tx, serialised, lock, back = random_.chance(plan_.writers.rolled_back)] {
        if (back) {
            table_.roll_back(tx);
        } else {
            table_.commit(tx);
        }
        if (serialised) busy_.erase(lock);
        --open_;
    });
}

void writers::insert(outbox_table::transaction tx, row_id id, event what) {
    const auto& habits = plan_.writers;
    std::string malformed;
    if (random_.chance(habits.malformed)) malformed = "the headers are no list of pairs";
    if (random_.chance(habits.guilty)) guilty_.insert(id);
    if (random_.chance(habits.reluctant)) reluctant_[id] = 1 + random_.below(3);
    if (!malformed.empty() || guilty_.contains(id) || reluctant_.contains(id) || what.topic == "lost")
        oracle_.culprit(id);
    table_.insert(tx, id, std::move(what), std::move(malformed));
}

std::optional<error> writers::verdict(const outbox_row& row) {
    if (mended_) return std::nullopt;
    if (guilty_.contains(row.id)) {
        return error{
            errc::refused_record,
            retry_advice::never,
            false,
            fmt::format("the sink will never take row {} as it is", row.id.value())};
    }
    const auto found = reluctant_.find(row.id);
    if (found == reluctant_.end() || found->second == 0) return std::nullopt;
    --found->second;
    return error{
        errc::refused_record,
        retry_advice::after_delay,
        false,
        fmt::format("the sink does not take row {} now; try it again", row.id.value())};
}

}  // namespace millrace::sim
