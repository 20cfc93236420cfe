#include "table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

namespace millrace::bench {

std::string as_table(const std::vector<figure>& figures) {
    std::vector<std::array<std::string, 7>> rows{{"figure", "measured", "probe", "ratio", "must", "aim", ""}};
    for (const auto& f : figures)
        rows.push_back({f.what, f.measured, f.probe, f.ratio, f.must, f.aim, f.met ? "" : "MISSED"});
    std::array<std::size_t, 7> widths{};
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            text += fmt::format("{:<{}}  ", row[i], widths[i]);
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
    }
    return text;
}

double median(std::vector<double> values) {
    return percentile(std::move(values), 0.5);
}

double percentile(std::vector<double> values, double share) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
    return values[at];
}

}  // namespace millrace::bench
