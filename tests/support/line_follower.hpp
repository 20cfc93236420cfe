/// Reads the lines that other processes append to a file, each once, as they come.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace millrace::support {

class line_follower {
public:
    explicit line_follower(std::filesystem::path file) : file_(std::move(file)) {}

    /// Calls `line` for each line that was completed since the last call.
    template <class F>
    void read(F line) {
        const auto text = read_new();
        for (std::size_t at = 0; at < text.size();) {
            const auto end = text.find('\n', at);
            rest_.append(text, at, end == std::string::npos ? std::string::npos : end - at);
            if (end == std::string::npos) return;
            line(std::exchange(rest_, {}));
            at = end + 1;
        }
    }

private:
    std::string read_new();

    std::filesystem::path file_;
    std::uint64_t offset_{0};
    std::string rest_;  // of a line that is not complete yet
};

}  // namespace millrace::support
