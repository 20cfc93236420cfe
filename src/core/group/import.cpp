#include "group/import.hpp"

#include "group/stream_identity.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

tl::unexpected<error> wrong_line(const imported_shard& line, std::string_view what) {
    const auto where = line.line > 0 ? fmt::format("line {}: ", line.line) : "";
    return fail(errc::invalid_argument, fmt::format("{}shard \"{}\" {}", where, line.shard.value(), what));
}

class import_planner {
public:
    import_planner(const import_ground& ground, bool force, const std::function<std::uint64_t()>& random)
        : ground_(ground), force_(force), random_(random) {
        for (const auto& shard : ground.stream.shards)
            listed_.emplace(shard.shard, &shard);
        if (ground.group) highest_ = ground.group->epoch_floor;
        for (const auto& row : ground.rows) {
            rows_.emplace(row.shard, &row);
            highest_ = std::max(highest_, row.epoch);
        }
    }

    result<import_plan> plan(std::span<const imported_shard> lines) {
        const auto& listed = ground_.stream.identity;
        if (ground_.group && relation_of(ground_.group->stream_identity, listed) == stream_relation::other)
            return tl::unexpected(other_stream(ground_.group->stream_identity, listed));
        for (const auto& line : lines) {
            const auto [first, is_new] = lines_.emplace(line.shard, &line);
            if (!is_new) return wrong_line(line, fmt::format("stands in line {}, too", first->second->line));
            if (!listed_.contains(line.shard) && !line.finished)
                return wrong_line(line, "is not in the stream; is it the stream that is meant?");
            // Numbers of shards come again when a stream is made anew.
            if (line.finished && listed_.contains(line.shard) && !listed_.at(line.shard)->closed) {
                return wrong_line(
                    line,
                    "cannot be finished: it is open in the stream; leave \"finished\" out, or the line when "
                    "it is of an older stream of this name"
                );
            }
        }
        for (const auto& line : lines)
            take(line);
        for (const auto& line : lines)
            finish_parents(line.shard);
        return std::move(plan_);
    }

private:
    [[nodiscard]] const shard_row* row_of(const shard_id& shard) const {
        const auto found = rows_.find(shard);
        return found == rows_.end() ? nullptr : found->second;
    }

    void take(const imported_shard& line) {
        if (!listed_.contains(line.shard)) {
            plan_.gone.push_back(line.shard);
            return;
        }
        const auto* row = row_of(line.shard);
        const bool was_finished = row != nullptr && row->finished_at;
        std::optional<position> before;
        if (row != nullptr && row->checkpoint) before = row->checkpoint->position;
        const auto wanted = line.reached ? line.reached : before;
        if (line.finished == was_finished && (wanted == before || (was_finished && !force_))) {
            ++plan_.same;
            return;
        }
        const bool back = before && wanted < before;
        if (!force_ && (was_finished || (back && !line.finished))) {
            plan_.kept.push_back(line.shard);
            return;
        }
        auto next = next_row(line.shard);
        if (line.reached && (force_ || !back))
            next.checkpoint = checkpoint{*line.reached, ground_.stream.now};
        next.finished_at.reset();
        if (line.finished) next.finished_at = ground_.now;
        write(std::move(next));
    }

    /// Those above it, as far as nothing is known of them.
    void finish_parents(const shard_id& shard) {
        std::vector<shard_id> below{shard};
        while (!below.empty()) {
            const auto found = listed_.find(below.back());
            below.pop_back();
            if (found == listed_.end()) continue;
            for (const auto& parent : found->second->parents) {
                if (!listed_.contains(parent) || lines_.contains(parent)) continue;
                if (!inferred_.insert(parent).second) continue;
                const auto* row = row_of(parent);
                if (row != nullptr && (row->finished_at || row->checkpoint))
                    continue;  // it speaks for itself
                below.push_back(parent);
                auto next = next_row(parent);
                next.finished_at = ground_.now;
                plan_.inferred.push_back(parent);
                write(std::move(next));
            }
        }
    }

    [[nodiscard]] shard_row next_row(const shard_id& shard) const {
        shard_row next;
        const auto* row = row_of(shard);
        if (row != nullptr) {
            next = *row;
        } else {
            next.shard = shard;
            next.parents = listed_.at(shard)->parents;
        }
        next.owner = incarnation{};
        next.epoch = epoch{highest_.value() + 1};
        next.version = version{next.version.value() + 1};
        next.write_id = write_id{random_()};
        return next;
    }

    void write(shard_row next) {
        const auto* row = row_of(next.shard);
        plan_.writes.push_back({std::move(next), row == nullptr ? std::nullopt : std::optional(row->version)}
        );
    }

    const import_ground& ground_;
    bool force_;
    const std::function<std::uint64_t()>& random_;
    std::map<shard_id, const listed_shard*> listed_;
    std::map<shard_id, const shard_row*> rows_;
    std::map<shard_id, const imported_shard*> lines_;
    std::set<shard_id> inferred_;  // and those that were looked at for it
    epoch highest_;
    import_plan plan_;
};

}  // namespace

result<import_plan> plan_import(
    std::span<const imported_shard> lines,
    const import_ground& ground,
    bool force,
    const std::function<std::uint64_t()>& random
) {
    return import_planner(ground, force, random).plan(lines);
}

}  // namespace millrace
