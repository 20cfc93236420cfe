/// What a command prints: results on standard output, faults on standard error, tables for people.
#pragma once

#include "faults.hpp"

#include <millrace/error.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace millrace::app {

/// Writes to standard output and flushes. A closed or full output is complained of and `failed`.
[[nodiscard]] exit_status print(std::string_view text);

/// Writes to standard error. Where that takes nothing for two seconds, the exit status is all that is left to
/// say it with.
void say(std::string_view text) noexcept;

/// One line on standard error, `millrace: ...`, and the status that the error stands for. A detail that
/// begins with a position (`line 3: ...`, `file:3:1: ...`) keeps it in front.
exit_status complain(const error& why);
void complain(const faults& found);

/// Columns aligned by width; text left, numbers right.
class table {
public:
    explicit table(std::vector<std::string> titles) : rows_{std::move(titles)} {}

    /// As many cells as there are titles.
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

    [[nodiscard]] std::string text() const;

private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace millrace::app
