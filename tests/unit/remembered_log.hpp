/// Remembers what was logged, for tests.
#pragma once

#include <millrace/log.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::test {

/// Every line as `event name=value ...`, from the level info on.
class remembered_log final : public log_sink {
public:
    [[nodiscard]] bool enabled(log_level level) const noexcept override { return level >= log_level::info; }
    void write(log_level, std::string_view event, std::initializer_list<log_field> fields) override {
        std::string line = std::string(event) + " ";
        for (const auto& field : fields)
            line += std::string(field.name) + "=" + field.value + " ";
        lines.push_back(std::move(line));
    }

    [[nodiscard]] std::vector<std::string> of(const std::string& event) const {
        std::vector<std::string> found;
        for (const auto& line : lines)
            if (line.starts_with(event + " ")) found.push_back(line);
        return found;
    }
    [[nodiscard]] std::size_t count(const std::string& event) const { return of(event).size(); }

    /// How often it happened: a line counts for itself, or for the `more` that were left out before it.
    [[nodiscard]] std::size_t times(const std::string& event) const {
        std::size_t sum = 0;
        for (const auto& line : of(event)) {
            const auto more = line.find("more=");
            sum += more == std::string::npos ? 1 : std::stoul(line.substr(more + 5));
        }
        return sum;
    }

    std::vector<std::string> lines;
};

}  // namespace millrace::test
