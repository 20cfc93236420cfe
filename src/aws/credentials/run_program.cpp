#include "credentials/run_program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace::aws {

namespace {

using steady = std::chrono::steady_clock;

class file {
public:
    explicit file(int fd = -1) : fd_(fd) {}
    ~file() { close(); }
    file(const file&) = delete;
    file& operator=(const file&) = delete;

    void set(int fd) {
        close();
        fd_ = fd;
    }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    [[nodiscard]] int fd() const { return fd_; }

private:
    int fd_;
};

tl::unexpected<error> wrong(std::string detail, errc code = errc::unavailable) {
    return fail(code, std::move(detail), retry_advice::after_delay);
}

tl::unexpected<error> cannot_run(int number) {
    return wrong(
        fmt::format("cannot be run: {}; name a program that can", std::generic_category().message(number)),
        errc::invalid_config
    );
}

struct spawn_settings {
    spawn_settings() {
        ::posix_spawn_file_actions_init(&files);
        ::posix_spawnattr_init(&attributes);
    }
    ~spawn_settings() {
        ::posix_spawn_file_actions_destroy(&files);
        ::posix_spawnattr_destroy(&attributes);
    }
    spawn_settings(const spawn_settings&) = delete;
    spawn_settings& operator=(const spawn_settings&) = delete;

    ::posix_spawn_file_actions_t files{};
    ::posix_spawnattr_t attributes{};
};

/// Starts it in a process group of its own. The number of the fault, or 0.
int spawn(const std::vector<std::string>& command, int output, ::pid_t& pid) {
    spawn_settings with;
    ::sigset_t none{};
    ::sigset_t all{};
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&with.attributes, &none);
    ::posix_spawnattr_setsigdefault(&with.attributes, &all);
    ::posix_spawnattr_setpgroup(&with.attributes, 0);
    ::posix_spawnattr_setflags(
        &with.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    );
    ::posix_spawn_file_actions_addopen(&with.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&with.files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&with.files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    ::posix_spawn_file_actions_addclosefrom_np(&with.files, STDERR_FILENO + 1);
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const auto& word : command)
        words.push_back(const_cast<char*>(word.c_str()));  // which posix_spawn does not write to
    words.push_back(nullptr);
    return ::posix_spawnp(&pid, words.front(), &with.files, &with.attributes, words.data(), environ);
}

/// glibc 2.36 declares pidfd_open in a way that C++ cannot link.
int process_handle(::pid_t pid) {
    return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

/// A started program: killed and waited for at the end.
class child {
public:
    explicit child(::pid_t pid) : pid_(pid), handle_(process_handle(pid)) {}
    ~child() {
        if (pid_ > 0) (void)end();
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    /// Readable once it has ended.
    [[nodiscard]] int handle() const { return handle_.fd(); }

    /// Its status; -1 when something else has taken it. Whatever is left of its group is killed.
    int end() {
        ::kill(-pid_, SIGKILL);  // it is not waited for yet, so the number is still its own
        int status = -1;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = 0;
        return status;
    }

private:
    ::pid_t pid_;
    file handle_;
};

/// What is read until the program has ended and the pipe is empty.
class output_reader {
public:
    output_reader(int pipe, const child& of, program_limits limits, const std::stop_token& stop)
        : pipe_(pipe),
          child_(of),
          limits_(limits),
          wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
          told_(stop, [this] { (void)::eventfd_write(wake_.fd(), 1); }) {}

    result<std::string> all() {
        const auto deadline = steady::now() + limits_.timeout;
        for (bool ended = false; !ended;) {
            std::array<::pollfd, 3> waits{
                {{wake_.fd(), POLLIN, 0}, {child_.handle(), POLLIN, 0}, {open_ ? pipe_ : -1, POLLIN, 0}}};
            const auto left = std::chrono::ceil<milliseconds>(deadline - steady::now());
            if (left.count() <= 0) {
                return wrong(fmt::format(
                    "did not end within {} s and was killed",
                    std::chrono::duration<double>(limits_.timeout).count()
                ));
            }
            const auto count = ::poll(waits.data(), waits.size(), static_cast<int>(left.count()));
            if (count < 0 && errno != EINTR) return cannot_run(errno);
            if (count <= 0) continue;
            if (waits[0].revents != 0) return wrong("was killed because the process stops", errc::cancelled);
            ended = waits[1].revents != 0;  // looked at before the last read
            if (auto taken = take(); !taken) return tl::unexpected(taken.error());
        }
        return std::move(text_);
    }

private:
    /// What the pipe holds now.
    result<void> take() {
        std::array<char, 4'096> piece{};
        while (open_) {
            const auto count = ::read(pipe_, piece.data(), piece.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) {
                open_ = count < 0 && errno == EAGAIN;
                return {};
            }
            text_.append(piece.data(), static_cast<std::size_t>(count));
            if (text_.size() > limits_.bytes_max) {
                return wrong(fmt::format("printed more than {} bytes and was killed", limits_.bytes_max));
            }
        }
        return {};
    }

    int pipe_;
    const child& child_;
    program_limits limits_;
    std::string text_;
    bool open_{true};
    file wake_;
    std::stop_callback<std::function<void()>> told_;
};

result<void> judge(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    if (WIFEXITED(status)) {
        return wrong(
            fmt::format("ended with status {}; run it by hand to see what it says", WEXITSTATUS(status))
        );
    }
    return wrong(fmt::format("was ended by signal {}", WIFSIGNALED(status) ? WTERMSIG(status) : 0));
}

}  // namespace

result<std::string> run_program(
    const std::vector<std::string>& command, program_limits limits, const std::stop_token& stop
) {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return cannot_run(errno);
    const file pipe(ends[0]);
    file output(ends[1]);
    ::fcntl(pipe.fd(), F_SETFL, O_NONBLOCK);
    ::pid_t pid = 0;
    if (const int fault = spawn(command, output.fd(), pid); fault != 0) return cannot_run(fault);
    output.close();
    child program(pid);
    auto text = output_reader(pipe.fd(), program, limits, stop).all();
    const int status = program.end();
    if (!text) return text;
    if (auto fine = judge(status); !fine) return tl::unexpected(fine.error());
    return text;
}

}  // namespace millrace::aws
