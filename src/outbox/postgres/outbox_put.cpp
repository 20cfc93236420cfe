#include "outbox_put.hpp"

#include "header_arrays.hpp"
#include "outbox_insert.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::postgres {

namespace {

using texts = std::vector<std::optional<std::string_view>>;

}  // namespace

result<std::optional<row_id>> put_events(
    connection& db, const outbox_layout& layout, std::span<const event> events
) {
    std::vector<std::pair<texts, texts>> headers(events.size());
    std::vector<statement> all;
    const auto sql = insert_event_sql(layout, false);
    for (std::size_t i = 0; i < events.size(); ++i) {
        const auto& what = events[i];
        if ((what.partition && !layout.partition) || (!what.headers.empty() && !layout.names)) {
            return fail(
                errc::invalid_argument,
                fmt::format(
                    "the outbox {} has no column for the partition or the headers of event {}; run `millrace "
                    "outbox init`, or leave them out",
                    layout.table.shown(),
                    i + 1
                )
            );
        }
        for (const auto& [name, value] : what.headers) {
            headers[i].first.emplace_back(name);
            headers[i].second.push_back(value ? std::optional<std::string_view>(*value) : std::nullopt);
        }
        auto& insert = all.emplace_back(sql, effect::writes, "write an event to the outbox in");
        insert.add(what.topic);
        for (const auto* const bytes : {&what.key, &what.value}) {
            if (*bytes) {
                insert.add(bytes_view{**bytes});
            } else {
                insert.add(std::nullopt);
            }
        }
        if (layout.names) {
            insert.add(text_array{headers[i].first});
            insert.add(bytes_array{headers[i].second});
        }
        if (layout.partition) insert.add(what.partition);
    }
    if (all.empty()) return std::nullopt;
    auto writing = db.begin();
    const auto done = writing.commit_with(all);
    if (!done) return tl::unexpected(done.error());
    return row_id{done->back().integer(0, 0).value_or(0)};
}

}  // namespace millrace::postgres
