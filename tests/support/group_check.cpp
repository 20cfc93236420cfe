#include "support/group_check.hpp"

#include <algorithm>
#include <charconv>

#include <boost/json.hpp>

namespace millrace::support {

namespace {

namespace json = boost::json;

void add(group_report& report, const std::string& what, const std::string& where) {
    auto& fault = report.faults[what];
    if (fault.count++ == 0) fault.first = where;
}

std::string named(const std::string& shard, const decimal& sequence) {
    return sequence.digits + " of " + shard;
}

std::string of_epoch(const std::string& shard, std::uint64_t epoch) {
    return shard + " under epoch " + std::to_string(epoch);
}

std::optional<std::string> text_of(const json::object& line, std::string_view field) {
    const auto* value = line.if_contains(field);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return std::string(value->get_string());
}

struct printed {
    std::string shard;
    decimal sequence;
    std::string key;
    std::uint64_t number{0};
    std::string worker;
    std::uint64_t epoch{0};
};

std::optional<printed> parse(std::string_view text) {
    boost::system::error_code bad;
    const auto parsed = json::parse(text, bad);
    if (bad || !parsed.is_object()) return std::nullopt;
    const auto& line = parsed.get_object();
    const auto shard = text_of(line, "shard");
    const auto sequence = text_of(line, "sequence");
    const auto key = text_of(line, "key");
    const auto data = text_of(line, "data");
    const auto worker = text_of(line, "worker");
    const auto* epoch = line.if_contains("epoch");
    if (!shard || !sequence || !key || !data || !worker || epoch == nullptr || !epoch->is_int64())
        return std::nullopt;
    std::uint64_t number = 0;
    const auto end = data->data() + data->size();
    if (std::from_chars(data->data(), end, number).ptr != end || data->empty()) return std::nullopt;
    return printed{
        *shard, {*sequence}, *key, number, *worker, static_cast<std::uint64_t>(epoch->get_int64())};
}

}  // namespace

std::uint64_t group_report::count(const std::string& of) const {
    const auto found = faults.find(of);
    return found == faults.end() ? 0 : found->second.count;
}

std::string group_report::text() const {
    std::string all = std::to_string(delivered) + " of " + std::to_string(put) + " delivered, " +
                      std::to_string(repeated) + " again (" + std::to_string(most_repeated) +
                      " by one owner); " + std::to_string(owners) + " owners, " + std::to_string(samples) +
                      " samples";
    for (const auto& [what, seen] : faults)
        all += "\n" + std::to_string(seen.count) + " " + what + ", first: " + seen.first;
    return all;
}

void group_check::fault(const std::string& what, const std::string& where) {
    auto& fault = faults_[what];
    if (fault.count++ == 0) fault.first = where;
}

void group_check::put(
    const std::string& shard, const std::string& sequence, const std::string& key, std::uint64_t n
) {
    ++put_;
    auto& newest = newest_put_[key];
    if (n <= newest) fault("put out of order", named(shard, {sequence}));
    newest = n;
    auto& one = records_[shard][{sequence}];
    if (one.put || (one.first && (one.key != key || one.number != n)))
        fault("not as it was put", named(shard, {sequence}));
    one.put = true;
    one.key = key;
    one.number = n;
}

std::optional<group_check::delivery> group_check::line(std::string_view text, milliseconds time) {
    const auto at = lines_++;
    times_.push_back(time);
    const auto seen = parse(text);
    if (!seen) {
        fault("not a line of a record", std::string(text));
        return std::nullopt;
    }
    auto& runs = runs_[seen->shard];
    if (!runs.empty() && runs.rbegin()->first > seen->epoch) {
        fault("two readers at once", of_epoch(seen->shard, seen->epoch) + ", " + seen->worker);
        return std::nullopt;
    }
    const auto [place, first_of_run] = runs.try_emplace(seen->epoch);
    auto& now = place->second;
    if (first_of_run) {
        now = {.worker = seen->worker, .begin = at, .lowest = seen->sequence, .last = {}, .repeats = {}};
    } else {
        if (now.worker != seen->worker) fault("two owners", of_epoch(seen->shard, seen->epoch));
        if (seen->sequence <= now.last) fault("back within an epoch", named(seen->shard, seen->sequence));
        now.lowest = std::min(now.lowest, seen->sequence);
    }
    now.last = std::max(now.last, seen->sequence);

    auto& one = records_[seen->shard][seen->sequence];
    const bool again = one.first.has_value();
    if ((again || one.put) && (one.key != seen->key || one.number != seen->number))
        fault("not as it was put", named(seen->shard, seen->sequence));
    if (again) {
        if (one.epoch != seen->epoch) now.repeats.push_back({one.epoch, one.latest});
    } else {
        one.first = at;
        one.key = seen->key;
        one.number = seen->number;
        ++delivered_;
        auto& newest = newest_delivered_[seen->key];
        if (seen->number < newest)
            fault("out of order", named(seen->shard, seen->sequence) + ", key " + seen->key);
        newest = std::max(newest, seen->number);
    }
    one.epoch = seen->epoch;
    one.latest = at;
    return delivery{seen->shard, seen->worker, seen->epoch, again};
}

void group_check::compare(const shard_sample& before, const shard_sample& after) {
    if (after.epoch < before.epoch) fault("epoch went back", of_epoch(after.shard, after.epoch));
    if (after.version < before.version) fault("version went back", after.shard);
    if (before.checkpoint && (!after.checkpoint || *after.checkpoint < *before.checkpoint))
        fault("checkpoint went back", named(after.shard, *before.checkpoint));
    if (before.finished && !after.finished) fault("finished no more", after.shard);
    const bool changed = !before.owner.empty() && !after.owner.empty() && before.owner != after.owner;
    if (changed && after.epoch == before.epoch)
        fault("two owners", of_epoch(after.shard, after.epoch) + ", by its row");
}

/// A listing is no snapshot, so what the next one still says counts.
void group_check::look_at_parents(const std::vector<shard_sample>& rows) {
    for (const auto& [child, parent] : begun_too_early_) {
        const auto row = newest_.find(parent);
        if (row == newest_.end() || !row->second.finished)
            fault("child before its parent", child + " is taken, " + parent + " is not finished");
    }
    begun_too_early_.clear();
    for (const auto& row : rows) {
        if (row.owner.empty() && !row.checkpoint) continue;
        for (const auto& parent : row.parents) {
            const auto found = newest_.find(parent);
            if (found == newest_.end() || !found->second.finished)
                begun_too_early_.emplace_back(row.shard, parent);
        }
    }
}

void group_check::sample(const std::vector<shard_sample>& rows) {
    ++samples_;
    for (const auto& row : rows) {
        const auto [place, first] = newest_.try_emplace(row.shard, row);
        auto& before = place->second;
        if (!first) compare(before, row);
        if (first || before.checkpoint != row.checkpoint || before.finished != row.finished ||
            before.epoch != row.epoch)
            progress_[row.shard].push_back({lines_, row.epoch, row.checkpoint, row.finished});
        before = row;
    }
    for (const auto& newest : newest_) {
        const auto& shard = newest.first;  // clang 14 lets no lambda capture a structured binding
        const bool there =
            std::any_of(rows.begin(), rows.end(), [&](const auto& r) { return r.shard == shard; });
        if (!there) fault("a row is gone", shard);
    }
    look_at_parents(rows);
}

std::optional<decimal> group_check::last_of(const std::string& shard) const {
    const auto found = records_.find(shard);
    if (found == records_.end() || found->second.empty()) return std::nullopt;
    return found->second.rbegin()->first;
}

/// Of the line before.
group_check::milliseconds group_check::time_before(moment line) const {
    return line == 0 || times_.empty() ? milliseconds{0} : times_[std::min(line, times_.size()) - 1];
}

/// The disturbance that excuses most: of this owner, while it had the shard and the other had not, and what
/// it delivered long before was written by then.
const group_check::disturbance* group_check::excuse(const run& of, moment delivered, moment until) const {
    const disturbance* best = nullptr;
    for (const auto& one : disturbances_) {
        if (!one.worker.empty() && one.worker != of.worker) continue;
        if (one.to < of.begin || one.from > until) continue;
        if (times_[delivered] + written_within_ < time_before(one.from)) continue;
        if (best == nullptr || one.repeats > best->repeats) best = &one;
    }
    return best;
}

void group_check::judge_records(group_report& report) const {
    for (const auto& [shard, records] : records_) {
        for (const auto& [sequence, one] : records) {
            if (!one.put) add(report, "never put", named(shard, sequence));
            if (!one.first) add(report, "lost", named(shard, sequence) + ", key " + one.key);
        }
    }
}

/// How many may come again.
std::uint64_t group_check::judge_repeats(
    const std::map<std::uint64_t, run>& runs,
    std::uint64_t epoch,
    const std::string& name,
    group_report& report
) const {
    std::uint64_t allowed = 0;
    const auto& mine = runs.at(epoch);
    for (const auto& one : mine.repeats) {
        const auto& earlier = runs.at(one.epoch);
        const auto* why = excuse(earlier, one.at, mine.begin);
        if (why == nullptr) {
            add(report,
                "again for no reason",
                name + ", what " + earlier.worker + " delivered under " + std::to_string(one.epoch));
        } else {
            allowed = std::max(allowed, why->repeats);
        }
    }
    return allowed;
}

void group_check::judge_runs(group_report& report) const {
    for (const auto& [shard, runs] : runs_) {
        report.owners += runs.size();
        for (const auto& [epoch, one] : runs) {
            const auto name = of_epoch(shard, epoch);
            const auto allowed = judge_repeats(runs, epoch, name, report);
            report.repeated += one.repeats.size();
            report.most_repeated = std::max<std::uint64_t>(report.most_repeated, one.repeats.size());
            if (allowed > 0 && one.repeats.size() > allowed)
                add(report, "too many again", std::to_string(one.repeats.size()) + " of " + name);
        }
    }
}

void group_check::judge_rows(group_report& report) const {
    static const std::map<decimal, record> no_records;
    static const std::map<std::uint64_t, run> no_runs;
    for (const auto& [shard, history] : progress_) {
        const auto found = records_.find(shard);
        const auto& records = found == records_.end() ? no_records : found->second;
        const auto owners = runs_.find(shard);
        const auto& runs = owners == runs_.end() ? no_runs : owners->second;
        // Checkpoints grow, so each record is looked at once.
        auto next = records.begin();
        std::optional<moment> newest;  // of the first deliveries up to the checkpoint
        const auto pass = [&](const std::optional<decimal>& up_to) {
            for (; next != records.end() && (!up_to || next->first <= *up_to); ++next)
                newest = std::max(newest.value_or(0), next->second.first.value_or(lines_));
        };
        std::optional<decimal> reached;
        for (const auto& step : history) {
            if (step.checkpoint) pass(step.checkpoint);
            if (step.finished) pass(std::nullopt);
            if (newest && *newest >= step.at)
                add(report,
                    step.finished ? "finished before its last record" : "checkpoint ahead of deliveries",
                    step.checkpoint ? named(shard, *step.checkpoint) : shard);
            // Whoever takes the shard later reads on behind what an earlier owner has written.
            const auto later = runs.upper_bound(step.epoch);
            if (step.checkpoint && later != runs.end() && later->second.lowest <= *step.checkpoint)
                add(report, "read again before the checkpoint", named(shard, *step.checkpoint));
        }
    }
}

void group_check::judge_children(group_report& report) const {
    for (const auto& [child, parents] : parents_) {
        const auto runs = runs_.find(child);
        if (runs == runs_.end()) continue;
        auto begin = lines_;
        for (const auto& [epoch, one] : runs->second)
            begin = std::min(begin, one.begin);
        for (const auto& parent : parents) {
            const auto records = records_.find(parent);
            if (records == records_.end()) continue;
            for (const auto& [sequence, one] : records->second)
                if (one.first && *one.first > begin)
                    add(report,
                        "child before its parent",
                        named(parent, sequence) + " came after the first of " + child);
        }
    }
}

group_report group_check::judge() const {
    group_report report;
    report.faults = faults_;
    report.put = put_;
    report.delivered = delivered_;
    report.samples = samples_;
    judge_records(report);
    judge_runs(report);
    judge_rows(report);
    judge_children(report);
    return report;
}

}  // namespace millrace::support
