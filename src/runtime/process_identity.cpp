#include "process_identity.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

namespace millrace {

namespace {

std::string read_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    auto text = read_proc_file(fd);
    ::close(fd);
    return text;
}

std::optional<process_stat> stat_of(std::int64_t pid) {
    return parse_process_stat(read_file(fmt::format("/proc/{}/stat", pid)));
}

std::string link_target(const char* path) {
    std::array<char, 256> buffer{};
    const auto length = ::readlink(path, buffer.data(), buffer.size());
    return length > 0 ? std::string(buffer.data(), static_cast<std::size_t>(length)) : std::string();
}

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> buffer{};
    return ::gethostname(buffer.data(), buffer.size() - 1) == 0 ? std::string(buffer.data()) : "unknown";
}

std::string boot_id() {
    auto text = read_file("/proc/sys/kernel/random/boot_id");
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    return text;
}

bool no_such_process(std::int64_t pid) {
    return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
}

}  // namespace

std::string read_proc_file(int fd) {
    std::array<char, 4096> buffer;
    std::string text;
    for (;;) {
        const auto length = ::read(fd, buffer.data(), buffer.size());
        if (length < 0 && errno == EINTR) continue;
        if (length < 0) return {};
        if (length == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(length));
    }
}

std::optional<process_stat> parse_process_stat(std::string_view text) {
    const auto name_end = text.rfind(')');
    if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
    auto rest = text.substr(name_end + 2);
    process_stat found{.state = rest.front()};
    for (int field = 3; field < 22; ++field) {
        const auto space = rest.find(' ');
        if (space == std::string_view::npos) return std::nullopt;
        rest.remove_prefix(space + 1);
    }
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), found.start_time);
    if (parsed.ec != std::errc{}) return std::nullopt;
    return found;
}

process_identity this_process() {
    process_identity self;
    self.host = host_name();
    self.boot_id = boot_id();
    self.pid_namespace = link_target("/proc/self/ns/pid");
    self.pid = ::getpid();
    if (const auto stat = stat_of(self.pid)) self.start_time = stat->start_time;
    return self;
}

bool process_gone(const process_identity& which) {
    static const process_identity self = this_process();
    if (self.boot_id.empty() || self.pid_namespace.empty()) return false;
    if (which.boot_id != self.boot_id || which.pid_namespace != self.pid_namespace) return false;
    if (which.pid <= 0 || which.start_time == 0) return false;
    const auto stat = stat_of(which.pid);
    if (!stat) return no_such_process(which.pid);
    return stat->start_time != which.start_time || stat->state == 'Z' || stat->state == 'X';
}

worker_id default_worker_id(const process_identity& self, std::uint64_t random) {
    return worker_id(fmt::format("{}-{}-{:08x}", self.host, self.pid, random & 0xffff'ffff));
}

}  // namespace millrace
