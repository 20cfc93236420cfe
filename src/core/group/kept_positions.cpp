#include "group/kept_positions.hpp"

#include <fmt/format.h>

namespace millrace {

std::optional<kept_by> kept_by_from(std::string_view name) {
    if (name == "gosoline") return kept_by::gosoline;
    if (name == "harlow") return kept_by::harlow;
    return std::nullopt;
}

std::string kept_under(kept_by whom, std::string_view app, std::string_view stream) {
    if (whom == kept_by::gosoline) return fmt::format("checkpoint:{}:{}", app, stream);
    return fmt::format("{}-{}", app, stream);
}

result<std::vector<imported_shard>> read_kept(
    std::span<const kept_row> rows, std::string_view under, std::string_view where
) {
    std::vector<imported_shard> shards;
    for (const auto& row : rows) {
        if (row.shard.empty())
            return fail(errc::corrupt, fmt::format("{} has a row of \"{}\" without a shard", where, under));
        imported_shard one;
        one.shard = shard_id{row.shard};
        one.finished = !row.finished_at.empty();
        if (!row.sequence.empty()) {
            const auto sequence = sequence_number::parse(row.sequence);
            if (!sequence) {
                return fail(
                    errc::corrupt,
                    fmt::format(
                        "{}, row of \"{}\": shard \"{}\" has a position that is no decimal number; mend the "
                        "row, or import a file of positions",
                        where,
                        under,
                        row.shard
                    )
                );
            }
            one.reached = position{*sequence, 0};
        }
        if (one.reached || one.finished) shards.push_back(std::move(one));
    }
    if (!shards.empty()) return shards;
    return fail(
        errc::not_found,
        fmt::format(
            "{} has {} under \"{}\"; see that --app and the stream are those of the former consumer",
            where,
            rows.empty() ? "no row" : "no position",
            under
        )
    );
}

}  // namespace millrace
