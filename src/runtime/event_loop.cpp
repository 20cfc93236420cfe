#include "event_loop.hpp"

#include "assert.hpp"
#include "guarded_log.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <map>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <sys/timerfd.h>
#include <unistd.h>

namespace millrace {

namespace asio = boost::asio;

namespace {

int make_timer_fd() {
    const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    MILLRACE_ASSERT(fd >= 0);  // only fails when the process is out of file descriptors
    return fd;
}

std::mt19937_64 seeded_engine() {
    std::random_device entropy;
    std::array<std::uint32_t, 8> words{};
    std::generate(words.begin(), words.end(), [&] { return entropy(); });
    std::seed_seq seed(words.begin(), words.end());
    return std::mt19937_64(seed);
}

}  // namespace

struct event_loop::impl {
    using key = std::pair<mono_time, timer>;

    explicit impl(log_sink& sink) : log(sink), timer_fd(context, make_timer_fd()), signals(context) {
        wait_for_timer();
    }

    /// The descriptor is set to the earliest timer and never later; when that timer was cancelled, it wakes
    /// the loop for nothing once.
    void arm(mono_time when) {
        if (when >= armed) return;
        armed = when;
        const auto ns = std::max<std::int64_t>(when.time_since_epoch().count(), 1);  // 0 would disarm
        itimerspec spec{};
        spec.it_value.tv_sec = ns / 1'000'000'000;
        spec.it_value.tv_nsec = ns % 1'000'000'000;
        MILLRACE_ASSERT(::timerfd_settime(timer_fd.native_handle(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
    }

    void wait_for_timer() {
        timer_fd.async_wait(asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code ec) {
            if (ec) return;  // only when the descriptor is closed
            fire();
            if (timers.empty()) {  // else it was set anew, and so is no longer ready
                std::uint64_t expirations = 0;
                [[maybe_unused]] const auto got =
                    ::read(timer_fd.native_handle(), &expirations, sizeof expirations);
            }
            wait_for_timer();
        });
    }

    /// Runs what is due now, and what may be. What a callback sets for now or earlier waits for the next
    /// turn, so that timers cannot starve posted work.
    void fire() {
        const auto now = boot_now();
        const key bound{now, ~timer{0}};
        while (!timers.empty() && timers.begin()->first <= bound) {
            due.insert(timers.extract(timers.begin()));
        }
        if (!due.empty()) take_early(now);
        armed = mono_time::min();  // once, when all has been called
        while (!due.empty()) {
            auto node = due.extract(due.begin());
            times.erase(node.key().second);
            node.mapped()();
        }
        armed = mono_time::max();
        if (!timers.empty()) arm(timers.begin()->first.first);
    }

    void take_early(mono_time now) {
        std::erase_if(early, [&](const auto& one) {
            const auto found = times.find(one.second);
            if (found == times.end()) return true;
            const bool may = one.first <= now;
            if (may) due.insert(timers.extract({found->second, one.second}));
            return may;
        });
    }

    void wait_for_signal() {
        signals.async_wait([this](boost::system::error_code ec, int signal) {
            if (ec) return;
            signals.clear();
            signal_callback(signal);
        });
    }

    guarded_log log;
    std::mt19937_64 random{seeded_engine()};
    asio::io_context context{1};
    asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
    asio::posix::stream_descriptor timer_fd;
    asio::signal_set signals;
    std::function<void(int)> signal_callback;

    mono_time armed{mono_time::max()};
    timer next_timer{1};
    std::map<key, std::function<void()>> timers;
    std::map<key, std::function<void()>> due;  // taken out by `fire` and not yet called
    std::unordered_map<timer, mono_time> times;
    std::vector<std::pair<mono_time, timer>> early;  // of `call_between`, by their first moment
};

event_loop::event_loop(log_sink& log) : impl_(std::make_unique<impl>(log)) {}

event_loop::~event_loop() = default;

mono_time event_loop::now() const {
    return boot_now();
}

wall_time event_loop::wall() const {
    return std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
}

std::uint64_t event_loop::random() {
    return impl_->random();
}

host::timer event_loop::call_at(mono_time when, std::function<void()> what) {
    const auto id = impl_->next_timer++;
    impl_->timers.emplace(impl::key{when, id}, std::move(what));
    impl_->times.emplace(id, when);
    impl_->arm(when);
    return id;
}

host::timer event_loop::call_between(mono_time first, mono_time last, std::function<void()> what) {
    const auto id = call_at(last, std::move(what));
    impl_->early.emplace_back(first, id);
    return id;
}

void event_loop::cancel(timer which) {
    const auto found = impl_->times.find(which);
    if (found == impl_->times.end()) return;
    const impl::key key{found->second, which};
    impl_->times.erase(found);
    if (impl_->timers.erase(key) == 0) impl_->due.erase(key);
}

void event_loop::post(std::function<void()> what) {
    asio::post(impl_->context, std::move(what));
}

log_sink& event_loop::log() {
    return impl_->log;
}

void event_loop::run() {
    impl_->context.run();
    impl_->context.restart();
}

void event_loop::stop() {
    impl_->context.stop();
}

void event_loop::on_signals(std::function<void(int signal)> what) {
    impl_->signal_callback = std::move(what);
    impl_->signals.add(SIGTERM);
    impl_->signals.add(SIGINT);
    impl_->wait_for_signal();
}

mono_time boot_now() noexcept {
    timespec t{};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return mono_time{std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec}};
}

void ignore_broken_pipes() noexcept {
    std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace millrace
