#include "live_line.hpp"

#include "output.hpp"
#include "units.hpp"

#include <cstdio>
#include <mutex>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace millrace::app {

namespace {

// Standard error is one for the whole process, and so is the line on it.
std::mutex terminal;
bool drawn = false;

/// Not while it is held (ctrl-S): whoever works would wait for it.
bool takes_text() {
    struct pollfd ready {
        STDERR_FILENO, POLLOUT, 0
    };
    return ::poll(&ready, 1, 0) > 0;
}

void erase() {
    if (!drawn || !takes_text()) return;
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
    drawn = false;
}

std::string grouped(std::uint64_t n) {
    std::string text = fmt::format("{}", n);
    for (std::size_t i = text.size(); i > 3;) {
        i -= 3;
        text.insert(i, ",");
    }
    return text;
}

}  // namespace

double rate_meter::sample(std::uint64_t done, clock::time_point now) {
    if (!last_) {
        last_ = now;
        last_done_ = done;
        return 0;
    }
    const double elapsed = std::chrono::duration<double>(now - *last_).count();
    if (elapsed < 0.5) return rate_;
    const double latest = static_cast<double>(done - last_done_) / elapsed;
    rate_ = known_ ? 0.6 * rate_ + 0.4 * latest : latest;
    known_ = true;
    last_ = now;
    last_done_ = done;
    return rate_;
}

std::string progress_text(const progress& now, double rate) {
    std::string out =
        fmt::format("{} {}  {}/s", grouped(now.done), now.what, grouped(static_cast<std::uint64_t>(rate)));
    if (now.shards) out += "  " + counted(*now.shards, "shard");
    if (now.behind) {
        out +=
            now.behind->count() > 0 ? fmt::format("  {} behind", format_span(*now.behind)) : "  at the tip";
    }
    if (!now.backlog) return out;
    out += fmt::format("  backlog {}", grouped(*now.backlog));
    if (rate >= 1 && *now.backlog > 0) {
        const std::chrono::duration<double> left{static_cast<double>(*now.backlog) / rate};
        out += fmt::format("  {} left", format_span(std::chrono::duration_cast<nanoseconds>(left)));
    }
    return out;
}

live_line::live_line() : enabled_(::isatty(STDERR_FILENO) == 1) {}

live_line::~live_line() {
    clear();
}

void live_line::show(const progress& work) {
    if (!enabled_) return;
    const auto now = rate_meter::clock::now();
    const double rate = meter_.sample(work.done, now);
    const std::lock_guard lock(terminal);
    if (drawn && now - drawn_ < std::chrono::milliseconds{240}) return;
    if (!takes_text()) return;
    drawn_ = now;
    say(fmt::format("\r{}\x1b[K", progress_text(work, rate)));
    drawn = true;
}

void live_line::clear() {
    if (enabled_) clear_for_log();
}

void live_line::clear_for_log() {
    const std::lock_guard lock(terminal);
    erase();
}

}  // namespace millrace::app
