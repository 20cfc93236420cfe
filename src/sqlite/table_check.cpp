#include "table_check.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace millrace::sqlite {

result<void> check_columns(database& db, std::string_view table, std::string_view columns) {
    auto found = db.prepare("SELECT name FROM pragma_table_info(?1)");
    if (!found) return tl::unexpected(std::move(found.error()));
    found->with(table);
    std::vector<std::string> present;
    while (true) {
        const auto more = found->step();
        if (!more) return tl::unexpected(more.error());
        if (!*more) break;
        present.push_back(found->text(0));
    }
    if (present.empty()) return {};
    std::string missing;
    while (!columns.empty()) {
        const std::string_view name = columns.substr(0, columns.find(','));
        columns.remove_prefix(std::min(columns.size(), name.size() + 2));
        if (std::find(present.begin(), present.end(), name) != present.end()) continue;
        missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
    }
    if (missing.empty()) return {};
    return fail(
        errc::invalid_config,
        fmt::format(
            "the table {} in {} is not one of Millrace: it lacks the column(s) {}; use another file, or "
            "rename that table",
            table,
            db.name(),
            missing
        )
    );
}

}  // namespace millrace::sqlite
