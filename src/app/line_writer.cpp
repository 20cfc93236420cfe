#include "line_writer.hpp"

#include <cerrno>
#include <utility>

namespace millrace::app {

namespace {

constexpr std::chrono::milliseconds wait_slice{50};

}  // namespace

line_writer::line_writer(int fd, line_writer_options options)
    : out_(fd), options_(std::move(options)), thread_([this] { run(); }) {}

line_writer::~line_writer() {
    {
        const std::lock_guard lock(turn_);
        ending_ = true;
        give_up_at_ = std::chrono::steady_clock::now() + options_.goodbye;
    }
    changed_.notify_all();
    thread_.join();
}

void line_writer::add(std::string line) {
    {
        const std::lock_guard lock(turn_);
        bytes_ += line.size();
        lines_.push_back(std::move(line));
        while (bytes_ > options_.bytes_max) {
            bytes_ -= lines_.front().size();
            lines_.pop_front();
            ++dropped_;
        }
    }
    changed_.notify_all();
}

void line_writer::flush() {
    std::unique_lock lock(turn_);
    changed_.wait_for(lock, options_.goodbye, [this] { return lines_.empty() && !writing_; });
}

std::uint64_t line_writer::dropped() const {
    const std::lock_guard lock(turn_);
    return dropped_;
}

void line_writer::run() {
    std::unique_lock lock(turn_);
    while (true) {
        changed_.wait(lock, [this] { return ending_ || !lines_.empty(); });
        if (lines_.empty()) return;
        const auto lost = dropped_ - std::exchange(dropped_told_, dropped_);
        const std::string line = std::move(lines_.front());
        bytes_ -= line.size();
        lines_.pop_front();
        writing_ = true;
        lock.unlock();
        if (options_.before_write) options_.before_write();
        const bool taken =
            (lost == 0 || !options_.of_dropped || write(options_.of_dropped(lost))) && write(line);
        lock.lock();
        writing_ = false;
        if (!taken) ++dropped_;
        changed_.notify_all();
        if (!taken && is_late()) return;
    }
}

/// False where it is to be dropped.
bool line_writer::write(std::string_view line) {
    while (!line.empty()) {
        const ssize_t n = out_.write(line);
        if (n >= 0) {
            line.remove_prefix(static_cast<std::size_t>(n));
            continue;
        }
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return false;
        if (out_.wait(wait_slice)) continue;
        const std::lock_guard lock(turn_);
        if (is_late()) return false;
    }
    return true;
}

bool line_writer::is_late() const {
    return ending_ && std::chrono::steady_clock::now() >= give_up_at_;
}

}  // namespace millrace::app
