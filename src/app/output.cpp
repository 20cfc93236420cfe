#include "output.hpp"

#include "assert.hpp"
#include "live_line.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

namespace millrace::app {

namespace {

bool all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether a message begins with `line N: ` or `FILE:LINE:COLUMN: `.
bool is_placed(std::string_view text) {
    const std::size_t end = text.find(": ");
    if (end == std::string_view::npos) return false;
    const std::string_view head = text.substr(0, end);
    if (head.substr(0, 5) == "line ") return all_digits(head.substr(5));
    const std::size_t column = head.rfind(':');
    if (column == std::string_view::npos || !all_digits(head.substr(column + 1))) return false;
    const std::size_t line = head.substr(0, column).rfind(':');
    return line != std::string_view::npos && all_digits(head.substr(line + 1, column - line - 1));
}

void complain_line(std::string_view text) {
    live_line::clear_for_log();
    say(fmt::format("{}{}\n", is_placed(text) ? "" : "millrace: ", text));
}

std::size_t width_of(std::string_view text) {
    // Continuation bytes of UTF-8 take no column.
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

}  // namespace

exit_status print(std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            complain_line(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
            return exit_status::failed;
        }
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return exit_status::done;
}

void say(std::string_view text) noexcept {
    (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

exit_status complain(const error& why) {
    complain_line(why.detail);
    return status_of(why);
}

void complain(const faults& found) {
    for (const std::string& text : found.lines())
        complain_line(text);
}

std::string table::text() const {
    const std::size_t columns = rows_.front().size();
    std::vector<std::size_t> widths(columns);
    std::vector<bool> numbers(columns, rows_.size() > 1);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        MILLRACE_ASSERT(rows_[r].size() == columns);
        for (std::size_t c = 0; c < columns; ++c) {
            widths[c] = std::max(widths[c], width_of(rows_[r][c]));
            if (r > 0 && !all_digits(rows_[r][c])) numbers[c] = false;
        }
    }
    std::string out;
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t c = 0; c < columns; ++c) {
            const std::string space(widths[c] - width_of(row[c]), ' ');
            if (c > 0) line += "  ";
            line += numbers[c] ? space + row[c] : row[c] + space;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

}  // namespace millrace::app
