/// What is wrong with a call of the program, gathered so that everything found at the start is reported
/// together. Not thread-safe.
#pragma once

#include <millrace/error.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace::app {

/// Exit statuses; scripts depend on them.
enum class exit_status : std::uint8_t {
    done = 0,    ///< Done, or stopped cleanly.
    failed = 1,  ///< Failed at run time; also a missing or unusable file, stream or shard.
    usage = 2,   ///< Command line, configuration, an argument out of range, or input format.
};

/// `usage` for an argument that can never work, `failed` for the rest: also for a file that is not what it
/// should be.
[[nodiscard]] exit_status status_of(const error& why) noexcept;

class faults {
public:
    void add(std::string line, exit_status status = exit_status::usage) {
        lines_.push_back(std::move(line));
        if (status > status_) status_ = status;
    }
    void add(const error& why) {
        add(why.detail, why.code == errc::invalid_config ? exit_status::usage : status_of(why));
    }

    /// A part of the configuration could not be read: what it says is not known.
    void note_unread() noexcept { unread_ = true; }
    [[nodiscard]] bool unread() const noexcept { return unread_; }

    [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }
    [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

    /// The gravest of all; `done` without any.
    [[nodiscard]] exit_status status() const noexcept { return status_; }

private:
    std::vector<std::string> lines_;
    exit_status status_{exit_status::done};
    bool unread_{false};
};

}  // namespace millrace::app
