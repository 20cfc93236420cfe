#include "stop_signals.hpp"

#include "assert.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace millrace::app {

namespace {

constexpr std::array<int, 2> signals{SIGTERM, SIGINT};
int noted = -1;  // the handler can reach nothing else

void note(int) {
    const int kept = errno;
    constexpr std::uint64_t one = 1;
    (void)!::write(noted, &one, sizeof one);  // it cannot fail, and nothing could be done
    errno = kept;
}

void act_on_signals(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    for (const int one : signals)
        (void)::sigaction(one, &action, nullptr);
}

}  // namespace

stop_signals::stop_signals() {
    MILLRACE_ASSERT(noted == -1);
    noted = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    act_on_signals(&note);
}

stop_signals::~stop_signals() {
    act_on_signals(SIG_DFL);
    ::close(noted);
    noted = -1;
}

int stop_signals::fd() const noexcept {
    return noted;
}

}  // namespace millrace::app
