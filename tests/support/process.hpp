/// Child processes for tests and the demonstration: started, fed, watched, signalled, waited for with a
/// limit, and gone with the thread that started them.
///
/// One thread owns a process, and must outlive it: the kernel kills it when that thread ends, however it
/// ends. Output goes to files, so no pipe can fill up and several processes can append to one file in the
/// true order of their writes.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace millrace::support {

struct spawn_options {
    std::string input;                     ///< Written to standard input, which is then closed.
    std::filesystem::path output;          ///< Appended to; empty: discarded.
    std::filesystem::path errors;          ///< Appended to; empty: discarded.
    std::vector<std::string> environment;  ///< `NAME=value`, added to this process's own.

    /// The superuser runs it as nobody, whom the modes of files stop. What it uses must be open to others.
    bool unprivileged{false};

    /// It runs in a PID namespace of its own, so that no other process can tell whether it is gone: to the
    /// workers of a group, a process of another machine. Takes root or the right to make user namespaces.
    bool own_pid_namespace{false};
};

/// The numbers of `nobody`.
constexpr unsigned nobody = 65534;

/// How a process ended and what it used.
struct exit_report {
    int status{0};  ///< Exit code, or 128 + signal.
    std::chrono::microseconds cpu{0};
    std::int64_t peak_memory_kib{0};
};

class process {
public:
    /// Throws std::system_error when the program cannot be started.
    explicit process(const std::vector<std::string>& command, const spawn_options& options = {});
    process(process&& other) noexcept;
    process& operator=(process&& other) noexcept;
    process(const process&) = delete;
    process& operator=(const process&) = delete;

    /// Kills it if it still runs.
    ~process();

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    void signal(int number) const;

    /// SIGTERM, once it has a handler for it: before, it would end as any program ends. Waits 10 s at most.
    void ask_to_end();

    /// True while it has not been waited for and has not ended.
    [[nodiscard]] bool running();

    /// Empty when it has not ended within `limit`.
    std::optional<exit_report> wait(std::chrono::milliseconds limit);

private:
    [[nodiscard]] bool handles(int number) const;

    /// Of /proc/PID/status, such as `VmHWM:`; empty once it has ended.
    [[nodiscard]] std::string status_of(const std::string& field) const;
    bool reap(bool block);

    pid_t pid_{-1};

    /// As last seen while it ran: the kernel's final figure is at least what its parent had when it forked.
    std::optional<std::int64_t> peak_kib_;

    std::optional<exit_report> ended_;
};

/// A finished command with what it printed.
struct command_result {
    int status{0};
    std::string output;
    std::string errors;
};

/// Runs a command to its end; kills it and reports status 124 when it lasts longer than `limit`.
command_result run(
    const std::vector<std::string>& command,
    const std::string& input = {},
    std::chrono::milliseconds limit = std::chrono::seconds{20}
);

/// As above; output and errors are caught whatever the options say.
command_result run(
    const std::vector<std::string>& command,
    spawn_options options,
    std::chrono::milliseconds limit = std::chrono::seconds{20}
);

[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Polls until `condition` holds; false when `limit` has passed first.
template <class Condition>
bool eventually(std::chrono::milliseconds limit, Condition condition);

/// Waits a few milliseconds, for `eventually`.
void pause_briefly();

template <class Condition>
bool eventually(std::chrono::milliseconds limit, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        pause_briefly();
    }
    return true;
}

}  // namespace millrace::support
