#include "output.hpp"

#include "assert.hpp"
#include "live_line.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace millrace::app {

namespace {

constexpr std::chrono::seconds say_limit{2};

bool all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Line and column of a message that begins with `line N: ` or `FILE:LINE:COLUMN: `.
std::optional<std::pair<std::size_t, std::size_t>> place_of(std::string_view text) {
    const auto number = [](std::string_view digits) -> std::optional<std::size_t> {
        std::size_t value = 0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (!all_digits(digits) || read.ec != std::errc{}) return std::nullopt;
        return value;
    };
    const std::string_view head = text.substr(0, text.find(": "));
    if (head.size() == text.size()) return std::nullopt;
    std::optional<std::size_t> column = 0;
    std::string_view line = head;
    if (head.substr(0, 5) == "line ") {
        line.remove_prefix(5);
    } else {
        const std::size_t second = head.rfind(':');
        if (second == std::string_view::npos) return std::nullopt;
        column = number(head.substr(second + 1));
        const std::size_t first = head.substr(0, second).rfind(':');
        if (first == std::string_view::npos) return std::nullopt;
        line = head.substr(first + 1, second - first - 1);
    }
    const auto at = number(line);
    if (!at || !column) return std::nullopt;
    return std::pair{*at, *column};
}

void complain_line(std::string_view text) {
    live_line::clear_for_log();
    say(fmt::format("{}{}\n", place_of(text) ? "" : "millrace: ", text));
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
    const auto give_up_at = std::chrono::steady_clock::now() + say_limit;
    while (!text.empty()) {
        struct pollfd ready {
            STDERR_FILENO, POLLOUT, 0
        };
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(give_up_at - std::chrono::steady_clock::now());
        const int room = left.count() > 0 ? ::poll(&ready, 1, static_cast<int>(left.count())) : 0;
        if (room < 0 && errno == EINTR) continue;
        if (room <= 0) return;
        // What a pipe or socket that takes anything takes whole.
        const ssize_t n = ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
        if (n < 0 && errno != EINTR && errno != EAGAIN) return;
        if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    }
}

exit_status complain(const error& why) {
    complain_line(why.detail);
    return status_of(why);
}

void complain(const faults& found) {
    // In the order of the file; what stands at no place comes last.
    std::vector<std::string> lines = found.lines();
    std::stable_sort(lines.begin(), lines.end(), [](const std::string& a, const std::string& b) {
        const auto first = place_of(a);
        const auto second = place_of(b);
        return first && (!second || *first < *second);
    });
    for (const std::string& text : lines)
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
