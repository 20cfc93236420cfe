#include "port/outbox_admin.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace {

error dead_that_stay(std::uint64_t moved, const std::vector<row_id>& ids) {
    constexpr std::size_t named_max = 20;
    std::string named;
    for (std::size_t i = 0; i < std::min(named_max, ids.size()); ++i)
        named += fmt::format("{}{}", i == 0 ? "" : ", ", ids[i].value());
    return {
        errc::conflict,
        retry_advice::never,
        false,
        fmt::format(
            "{} were put back and {} stay among the dead letters, because their ids, or others of their key, "
            "are in the outbox again, stand for two dead letters since the outbox was made anew, or were "
            "parked again just now (ids {}{}); wait until those rows are delivered, or settle the older dead "
            "letter by its id (`outbox dead show` prints it, `outbox dead drop` deletes it), and retry",
            moved,
            ids.size(),
            named,
            ids.size() > named_max ? ", …" : ""
        )};
}

}  // namespace millrace
