#include "cli.hpp"
#include "output.hpp"

#include <csignal>
#include <cstdio>
#include <exception>

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

namespace {

/// The number of a closed standard stream must not become that of the next file that is opened. What stands
/// for a closed input cannot be read and for a closed output not be written, so that both still fail.
void reserve_standard_streams() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
    }
}

/// Blocks as large as the reply of a Kinesis read come and go a thousand times a second. By default each is
/// given back to the kernel and taken from it again, page by page, which costs more than reading them.
void keep_freed_memory() {
#ifdef __GLIBC__
    ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
    ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

}  // namespace

int main(int argc, char** argv) {
    reserve_standard_streams();
    keep_freed_memory();
    // A closed pipe is an error of write(), not the end of the process.
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return millrace::app::run_program({argv + 1, argv + argc});
    } catch (const std::exception& e) {
        millrace::app::say(fmt::format("millrace: unexpected: {}; please report it\n", e.what()));
        return 1;
    }
}
