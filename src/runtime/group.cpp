#include "event_loop.hpp"
#include "group_worker.hpp"

#include <millrace/group.hpp>
#include <millrace/url.hpp>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr nanoseconds wait_max = std::chrono::hours{24 * 365};  // what is longer overflows the clock

error group_is_over() {
    return {errc::cancelled, retry_advice::never, false, "this worker has left the group; join it again"};
}

}  // namespace

/// The thread with the loop, and the way to ask it. Outlives the group while a lease refers to it; the thread
/// itself does, too, for a callback of a stop token, which runs on it, may let go of the last handle.
class group_thread : public std::enable_shared_from_this<group_thread> {
public:
    group_thread(group_settings settings, url state)
        : settings_(std::move(settings)),
          state_(std::move(state)),
          loop_(std::make_unique<event_loop>(settings_.log ? *settings_.log : null_log())) {}
    ~group_thread() {
        if (thread_.joinable()) thread_.detach();  // it runs this as its last act
    }
    group_thread(const group_thread&) = delete;
    group_thread& operator=(const group_thread&) = delete;

    [[nodiscard]] result<void> start();

    /// Waits, except on the loop's own thread.
    result<void> leave();

    /// Runs `what` on the loop and waits for its outcome; `cancelled` once the
    /// loop has ended.
    template <class T>
    result<T> ask(std::function<void(group_worker&, completion<T>)> what) {
        if (on_loop()) {
            return fail(errc::invalid_argument, "a lease cannot be used from a callback of its stop token");
        }
        auto answer = std::make_shared<std::promise<result<T>>>();
        auto outcome = answer->get_future();
        if (!post([this, what = std::move(what), answer = std::move(answer)] {
                what(*worker_, [answer](result<T> got) { answer->set_value(std::move(got)); });
            })) {
            return tl::unexpected(group_is_over());
        }
        try {
            return outcome.get();
        } catch (const std::future_error&) {  // the loop ended before it could answer
            return tl::unexpected(group_is_over());
        }
    }

    group_desk desk;
    [[nodiscard]] const group_settings& settings() const { return settings_; }

private:
    [[nodiscard]] bool on_loop() const { return std::this_thread::get_id() == loop_thread_; }
    bool post(std::function<void()> what);
    void run(const std::shared_ptr<std::promise<result<void>>>& opened);

    const group_settings settings_;
    const url state_;
    std::mutex loop_mutex_;
    std::unique_ptr<event_loop> loop_;  // null once it has ended
    std::unique_ptr<group_worker> worker_;
    std::mutex thread_mutex_;
    std::thread thread_;
    std::thread::id loop_thread_;  // set before `start` returns
    result<void> left_;            // once the thread has ended
};

bool group_thread::post(std::function<void()> what) {
    const std::lock_guard lock(loop_mutex_);
    if (!loop_) return false;
    loop_->post(std::move(what));
    return true;
}

result<void> group_thread::start() {
    auto opened = std::make_shared<std::promise<result<void>>>();
    auto outcome = opened->get_future();
    thread_ = std::thread([self = shared_from_this(), opened] { self->run(opened); });
    return outcome.get();
}

void group_thread::run(const std::shared_ptr<std::promise<result<void>>>& opened) {
    loop_thread_ = std::this_thread::get_id();
    worker_ = std::make_unique<group_worker>(*loop_, desk, settings_);
    auto outcome = worker_->open(state_);
    const bool usable = outcome.has_value();
    if (usable) worker_->start();
    opened->set_value(std::move(outcome));
    if (usable) loop_->run();
    worker_.reset();
    const std::lock_guard lock(loop_mutex_);
    loop_.reset();
}

result<void> group_thread::leave() {
    bool first = false;
    {
        const std::lock_guard lock(desk.mutex);
        first = !std::exchange(desk.left, true);
    }
    if (first) {
        desk.changed.notify_all();
        post([this] {
            worker_->leave([this](result<void> left) {
                left_ = std::move(left);
                loop_->stop();
            });
        });
    }
    if (on_loop()) {
        return fail(
            errc::invalid_argument,
            "the group is being left, but a callback of a stop token cannot wait for it; leave it from "
            "another thread"
        );
    }
    const std::lock_guard lock(thread_mutex_);
    if (thread_.joinable()) thread_.join();
    return left_;
}

struct lease::impl {
    std::shared_ptr<group_thread> thread;
    std::shared_ptr<held_resource> held;

    using request = void (group_worker::*)(const held_resource&, completion<void>);
    /// `ends` is what every later call answers once this one has succeeded.
    result<void> ask(request what, std::optional<errc> ends = {}) const {
        return thread->ask<void>([what, ends, held = held](group_worker& worker, completion<void> done) {
            if (held->ended) return done(over(*held));
            (worker.*what)(*held, [held, ends, done = std::move(done)](const result<void>& outcome) {
                if (outcome && ends) held->ended = ends;
                done(outcome);
            });
        });
    }

    static result<void> over(const held_resource& held) {
        return fail(
            *held.ended,
            fmt::format(
                "this lease of resource \"{}\" was given up before; acquire the resource again", held.resource
            )
        );
    }
};

lease::lease(std::shared_ptr<impl> inside) : impl_(std::move(inside)) {}

const std::string& lease::resource() const noexcept {
    return impl_->held->resource;
}

epoch lease::epoch() const noexcept {
    return impl_->held->epoch;
}

std::optional<position> lease::begin() const {
    return impl_->held->begin;
}

bool lease::valid() const {
    return impl_->held->guard->may_act();
}

std::stop_token lease::stop() const {
    return impl_->held->stop.get_token();
}

result<void> lease::advance(position reached) const {
    return impl_->thread->ask<void>([held = impl_->held,
                                     reached](group_worker& worker, const completion<void>& done) {
        done(held->ended ? impl::over(*held) : worker.advance(*held, reached));
    });
}

result<void> lease::advance(std::uint64_t reached) const {
    return advance(position{sequence_number{reached}, 0});
}

result<void> lease::persist() const {
    return impl_->ask(&group_worker::persist);
}

result<void> lease::release() const {
    return impl_->ask(&group_worker::release, errc::already_released);
}

result<void> lease::done() const {
    return impl_->ask(&group_worker::finish, errc::already_finished);
}

struct group::impl {
    std::shared_ptr<group_thread> thread;

    [[nodiscard]] bool shares(const std::string& resource) const {
        const auto& all = thread->settings().resources;
        return std::find(all.begin(), all.end(), resource) != all.end();
    }
    [[nodiscard]] error unknown(const std::string& resource) const {
        return {
            errc::not_found,
            retry_advice::never,
            false,
            fmt::format(
                "resource \"{}\" is not one of group \"{}\"; name it when joining",
                resource,
                thread->settings().name
            )};
    }

    /// Waits for a lease, of any resource when `resource` is null.
    result<std::shared_ptr<held_resource>> wait(
        const std::string* resource, nanoseconds timeout, const std::stop_token& stop
    );
};

result<std::shared_ptr<held_resource>> group::impl::wait(
    const std::string* resource, nanoseconds timeout, const std::stop_token& stop
) {
    auto& desk = thread->desk;
    const auto wanted = [&] {
        return std::find_if(desk.ready.begin(), desk.ready.end(), [&](const auto& ready) {
            return !resource || ready->resource == *resource;
        });
    };
    const auto finished = [&] {
        return resource ? desk.finished.count(*resource) > 0
                        : desk.finished.size() >= thread->settings().resources.size();
    };
    const auto limit = std::chrono::duration_cast<milliseconds>(std::min(timeout, wait_max));
    std::unique_lock lock(desk.mutex);
    desk.changed.wait_for(lock, stop, limit, [&] {
        return desk.left || desk.failed || wanted() != desk.ready.end() || finished();
    });
    if (desk.left) return tl::unexpected(group_is_over());
    if (desk.failed) return tl::unexpected(*desk.failed);
    if (const auto found = wanted(); found != desk.ready.end()) {
        auto taken = std::move(*found);
        desk.ready.erase(found);
        return taken;
    }
    if (finished()) {
        return fail(
            errc::already_finished,
            resource ? fmt::format("resource \"{}\" is done", *resource)
                     : fmt::format("every resource of group \"{}\" is done", thread->settings().name)
        );
    }
    if (stop.stop_requested()) return fail(errc::cancelled, "the caller stopped waiting for a lease");
    return fail(
        errc::unavailable,
        fmt::format("group \"{}\" had nothing for this worker in time; try again", thread->settings().name),
        retry_advice::now
    );
}

result<group> group::join(group_settings settings) {
    auto state = parse_url(settings.state, url_role::state);
    if (!state) return tl::unexpected(std::move(state.error()));
    if (settings.name.empty() || settings.resources.empty()) {
        return fail(errc::invalid_argument, "a group needs a name and at least one resource; give both");
    }
    std::sort(settings.resources.begin(), settings.resources.end());
    const auto twice = std::adjacent_find(settings.resources.begin(), settings.resources.end());
    if (twice != settings.resources.end()) {
        return fail(errc::invalid_argument, fmt::format("resource \"{}\" is named twice", *twice));
    }
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(settings.lease);
    const auto thread = std::make_shared<group_thread>(std::move(settings), std::move(*state));
    group joined(std::make_unique<impl>(impl{thread}));  // leaves where it is not returned
    if (auto started = thread->start(); !started) return tl::unexpected(std::move(started.error()));

    auto& desk = thread->desk;
    std::unique_lock lock(desk.mutex);
    desk.changed.wait_for(lock, limit, [&] { return desk.place || desk.failed; });
    if (desk.failed) return tl::unexpected(*desk.failed);
    if (!desk.place) {
        return fail(
            errc::unavailable,
            fmt::format(
                "the state \"{}\" did not answer within the lease time; try again", thread->settings().state
            ),
            retry_advice::after_delay
        );
    }
    return result<group>(std::move(joined));
}

group::group(std::unique_ptr<impl> inside) : impl_(std::move(inside)) {}

group::group(group&&) noexcept = default;

group& group::operator=(group&& other) noexcept {
    if (this != &other) {
        if (impl_) (void)leave();  // nobody is left to tell
        impl_ = std::move(other.impl_);
    }
    return *this;
}

group::~group() {
    if (impl_) (void)leave();  // nobody is left to tell
}

result<membership> group::members() const {
    auto& desk = impl_->thread->desk;
    const std::lock_guard lock(desk.mutex);
    if (desk.left) return tl::unexpected(group_is_over());
    if (desk.failed) return tl::unexpected(*desk.failed);
    return *desk.place;
}

result<lease> group::acquire(nanoseconds timeout, const std::stop_token& stop) {
    auto held = impl_->wait(nullptr, timeout, stop);
    if (!held) return tl::unexpected(std::move(held.error()));
    return lease(std::make_shared<lease::impl>(lease::impl{impl_->thread, std::move(*held)}));
}

result<lease> group::acquire(const std::string& resource, nanoseconds timeout, const std::stop_token& stop) {
    if (!impl_->shares(resource)) return tl::unexpected(impl_->unknown(resource));
    auto held = impl_->wait(&resource, timeout, stop);
    if (held) return lease(std::make_shared<lease::impl>(lease::impl{impl_->thread, std::move(*held)}));
    if (held.error().code != errc::unavailable) return tl::unexpected(std::move(held.error()));
    const auto why = impl_->thread->ask<error>([resource](group_worker& worker, completion<error> done) {
        done(worker.why_not(resource));
    });
    return tl::unexpected(why ? *why : why.error());
}

result<bool> group::finished(const std::string& resource) const {
    if (!impl_->shares(resource)) return tl::unexpected(impl_->unknown(resource));
    return impl_->thread->ask<bool>([resource](group_worker& worker, completion<bool> done) {
        worker.finished(resource, std::move(done));
    });
}

result<void> group::leave() {
    return impl_->thread->leave();
}

}  // namespace millrace
