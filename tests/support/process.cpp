#include "support/process.hpp"

#include "support/temporary_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace millrace::support {

namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

int open_for(const std::filesystem::path& path, int flags) {
    const int fd = ::open(path.empty() ? "/dev/null" : path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd < 0) fail("cannot open " + path.string());
    return fd;
}

/// Standard input as an unlinked file: no writer is needed that could block.
int input_of(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "millrace-input-XXXXXX").string();
    const int fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) fail("cannot make a temporary file");
    ::unlink(name.c_str());
    for (std::size_t at = 0; at < text.size();) {
        const auto written = ::write(fd, text.data() + at, text.size() - at);
        if (written < 0) fail("cannot write the input");
        at += static_cast<std::size_t>(written);
    }
    ::lseek(fd, 0, SEEK_SET);
    return fd;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (auto& text : texts)
        result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

std::vector<std::string> environment_with(const std::vector<std::string>& added) {
    auto all = added;
    const auto is_added = [&](const std::string& entry) {
        const auto name = entry.substr(0, entry.find('=') + 1);
        return std::any_of(added.begin(), added.end(), [&](const auto& one) {
            return one.starts_with(name);
        });
    };
    for (char** entry = environ; *entry != nullptr; ++entry)
        if (!is_added(*entry)) all.emplace_back(*entry);
    return all;
}

/// Forgotten when the user changes, so said again after that.
void die_with(pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
}

/// As fork(), whose child is the first process of a new PID namespace.
pid_t fork_into_namespace() {
    const unsigned user = ::geteuid() == 0 ? 0U : static_cast<unsigned>(CLONE_NEWUSER);
    return static_cast<pid_t>(
        ::syscall(SYS_clone, CLONE_NEWPID | user | SIGCHLD, nullptr, nullptr, nullptr, 0)
    );
}

/// The program may lie where nobody cannot look it up, so it is opened first.
[[noreturn]] void run_as_nobody(char* const* argv, char* const* envp, pid_t parent) {
    const int program = ::open(argv[0], O_RDONLY | O_CLOEXEC);
    if (::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0) {
        die_with(parent);
        ::fexecve(program, argv, envp);
    }
    ::_exit(126);
}

}  // namespace

process::process(const std::vector<std::string>& command, const spawn_options& options) {
    auto arguments = command;
    auto environment = environment_with(options.environment);
    const auto argv = pointers(arguments);
    const auto envp = pointers(environment);
    const int in = options.input.empty() ? open_for({}, O_RDONLY) : input_of(options.input);
    const int out = open_for(options.output, O_WRONLY | O_CREAT | O_APPEND);
    const int err = open_for(options.errors, O_WRONLY | O_CREAT | O_APPEND);

    // Who stands outside the namespace has no number there.
    const auto parent = options.own_pid_namespace ? 0 : ::getpid();
    pid_ = options.own_pid_namespace ? fork_into_namespace() : ::fork();
    if (pid_ < 0 && options.own_pid_namespace)
        fail(
            "cannot make a PID namespace; run this test as root, or let users have namespaces of their own "
            "(sysctl kernel.unprivileged_userns_clone=1)"
        );
    if (pid_ < 0) fail("cannot fork");
    if (pid_ == 0) {
        die_with(parent);
        ::dup2(in, STDIN_FILENO);
        ::dup2(out, STDOUT_FILENO);
        ::dup2(err, STDERR_FILENO);
        if (options.unprivileged && ::geteuid() == 0) run_as_nobody(argv.data(), envp.data(), parent);
        ::execve(argv[0], argv.data(), envp.data());
        ::_exit(127);
    }
    ::close(in);
    ::close(out);
    ::close(err);
}

process::process(process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), peak_kib_(other.peak_kib_), ended_(std::move(other.ended_)) {}

process& process::operator=(process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(peak_kib_, other.peak_kib_);
    std::swap(ended_, other.ended_);
    return *this;
}

process::~process() {
    if (pid_ > 0 && !ended_) {
        ::kill(pid_, SIGKILL);
        reap(true);
    }
}

void process::signal(int number) const {
    if (pid_ > 0 && !ended_) ::kill(pid_, number);
}

void process::ask_to_end() {
    eventually(std::chrono::seconds{10}, [this] { return !running() || handles(SIGTERM); });
    signal(SIGTERM);
}

std::string process::status_of(const std::string& field) const {
    std::ifstream status{"/proc/" + std::to_string(pid_) + "/status"};
    for (std::string line; std::getline(status, line);)
        if (line.compare(0, field.size(), field) == 0) return line.substr(field.size());
    return {};
}

bool process::handles(int number) const {
    const auto caught = status_of("SigCgt:");
    return !caught.empty() &&
           ((std::stoull(caught, nullptr, 16) >> static_cast<unsigned>(number - 1)) & 1U) != 0;
}

bool process::reap(bool block) {
    if (ended_ || pid_ <= 0) return true;
    int status = 0;
    rusage used{};
    pid_t got = -1;
    do {
        got = ::wait4(pid_, &status, block ? 0 : WNOHANG, &used);
    } while (got < 0 && errno == EINTR);
    if (got == 0) {
        if (const auto peak = status_of("VmHWM:"); !peak.empty()) peak_kib_ = std::stoll(peak);
        return false;
    }
    const auto time = [](const timeval& t) {
        return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
    };
    ended_ = exit_report{
        .status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
        .cpu = time(used.ru_utime) + time(used.ru_stime),
        .peak_memory_kib = peak_kib_.value_or(used.ru_maxrss)};
    return true;
}

bool process::running() {
    return !reap(false);
}

std::optional<exit_report> process::wait(std::chrono::milliseconds limit) {
    eventually(limit, [this] { return reap(false); });
    return ended_;
}

command_result run(
    const std::vector<std::string>& command, const std::string& input, std::chrono::milliseconds limit
) {
    spawn_options options;
    options.input = input;
    return run(command, std::move(options), limit);
}

command_result run(
    const std::vector<std::string>& command, spawn_options options, std::chrono::milliseconds limit
) {
    const temporary_folder folder;
    options.output = folder.file("out");
    options.errors = folder.file("err");
    process child{command, options};
    auto report = child.wait(limit);
    if (!report) child.signal(SIGKILL);
    return {report ? report->status : 124, read_file(folder.file("out")), read_file(folder.file("err"))};
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

void pause_briefly() {
    ::poll(nullptr, 0, 2);
}

}  // namespace millrace::support
