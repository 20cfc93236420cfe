#include "kafka_leader.hpp"

#include "leader/kafka_seat.hpp"
#include "leader_client.hpp"
#include "overload.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace millrace {

namespace {

constexpr auto wait_max = std::chrono::seconds{1};
constexpr auto count_members_every = std::chrono::seconds{2};
constexpr auto tell_trouble_every = std::chrono::seconds{10};

}  // namespace

struct kafka_leader::impl final : kafka::leader_news {
    impl(host& on, kafka_leader_options with)
        : home(on),
          options(std::move(with)),
          seat({options.name, options.heartbeat_timeout, options.session_timeout()}),
          wake_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    ~impl() override {
        if (thread.joinable()) {
            quit = true;
            ring();
            thread.join();
        }
        client.reset();
        if (wake_fd >= 0) ::close(wake_fd);
    }
    impl(const impl&) = delete;
    impl& operator=(const impl&) = delete;

    // The host's side.
    void command(kafka_seat::event what) {
        {
            const std::lock_guard lock(mutex);
            commands.push_back(std::move(what));
        }
        ring();
    }
    void ring() const {
        const std::uint64_t one = 1;
        // Full means that it rings already.
        if (::write(wake_fd, &one, sizeof one) < 0) return;
    }

    // The thread's side.
    [[nodiscard]] result<void> make_client();
    void run();
    void wait(bool more);
    void step(const kafka_seat::event& what);
    void carry_out(kafka_seat::action& what);
    void join_or_leave();
    void tell(std::function<void(group_leader_listener&)> what);
    void set_trouble(std::optional<error> why);

    void assigned(bool first) override {
        home.log().write(
            log_level::info, "leader.assigned", {{"group", options.group}, {"first", first ? "yes" : "no"}}
        );
        in_group.store(true);
        if (!first) set_trouble(std::nullopt);
        step(kafka_seat::assigned{first});
    }
    void revoked(bool in_order) override { step(kafka_seat::revoked{in_order}); }
    void record(std::string_view value) override { step(kafka_seat::record_seen{value}); }
    void members(std::size_t count) override { others.store(leads && count > 1); }
    void trouble(error why) override { set_trouble(std::move(why)); }
    void broken(error why) override {
        set_trouble(why);
        step(kafka_seat::broken{std::move(why)});
    }

    host& home;
    const kafka_leader_options options;
    kafka_seat seat;
    group_leader_listener* listener{nullptr};
    completion<void> stop_done;
    lifetime alive;
    std::uint64_t heard_term{0};  ///< The latest that the listener was told of.

    int wake_fd;
    std::thread thread;
    std::atomic<bool> quit{false};
    std::atomic<std::int64_t> deadline{mono_time::min().time_since_epoch().count()};
    std::atomic<std::uint64_t> term{0};  ///< Counts the times that this member was chosen.
    std::atomic<bool> in_group{false};
    std::atomic<bool> others{false};
    mutable std::mutex mutex;
    std::deque<kafka_seat::event> commands;
    std::optional<error> latest_trouble;

    std::unique_ptr<kafka::leader_client> client;
    bool leads{false};
    bool over{false};
    bool join_asked{false};
    bool leave_asked{false};
    mono_time count_at{};
    mono_time told_at{mono_time::min()};
};

// Members are ordered by their ids, which begin with the client's, and the first gets partition 0. So the
// time keeps a leader where it is when others come, and before the members of goharvest ("rdkafka"). It is a
// preference only: nothing rests on it.
result<void> kafka_leader::impl::make_client() {
    const auto id = fmt::format("millrace-{:013}", home.wall().time_since_epoch().count());
    auto made = kafka::leader_client::make(options, id, wake_fd, *this, home.log());
    if (!made) return tl::unexpected(std::move(made.error()));
    client = std::move(*made);
    return {};
}

void kafka_leader::impl::run() {
    step(kafka_seat::begin{});
    while (!quit && !over) {
        std::deque<kafka_seat::event> asked;
        {
            const std::lock_guard lock(mutex);
            asked.swap(commands);
        }
        for (const auto& what : asked)
            step(what);
        const bool more = client && client->poll(home.now());
        step(kafka_seat::tick{});
        join_or_leave();
        if (client && leads && home.now() >= count_at) {
            count_at = home.now() + count_members_every;
            client->count_members();
        }
        if (!over) wait(more);
    }
}

void kafka_leader::impl::wait(bool more) {
    const auto now = home.now();
    auto until = now + wait_max;
    if (const auto due = seat.wake()) until = std::min(until, *due);
    if (const auto due = client ? client->wake() : std::nullopt) until = std::min(until, *due);
    if (leads) until = std::min(until, count_at);
    const auto left = std::chrono::ceil<milliseconds>(std::max(until - now, nanoseconds::zero())).count();
    pollfd waiting{wake_fd, POLLIN, 0};
    if (::poll(&waiting, 1, more ? 0 : static_cast<int>(left)) <= 0) return;
    std::uint64_t rung = 0;
    if (::read(wake_fd, &rung, sizeof rung) < 0) return;  // the next turn looks at everything anyway
}

void kafka_leader::impl::step(const kafka_seat::event& what) {
    auto actions = seat.step(home.now(), home.wall(), what);
    const bool chosen = std::any_of(actions.begin(), actions.end(), [](const kafka_seat::action& a) {
        return std::holds_alternative<kafka_seat::lead>(a);
    });
    if (chosen) ++term;
    deadline.store(seat.deadline().time_since_epoch().count());
    for (auto& action : actions)
        carry_out(action);
}

void kafka_leader::impl::carry_out(kafka_seat::action& what) {
    std::visit(
        overload{
            [&](kafka_seat::join&) { join_asked = true; },
            [&](kafka_seat::leave&) { leave_asked = true; },
            [&](kafka_seat::send& a) {
                if (client) client->send(a.value);
            },
            [&](kafka_seat::unassign&) {
                if (client) client->unassign();
            },
            [&](kafka_seat::lead&) {
                leads = true;
                count_at = home.now();
                set_trouble(std::nullopt);
                home.log().write(
                    log_level::info, "leader.chosen", {{"group", options.group}, {"name", options.name}}
                );
                home.post(alive.guard([this, now = term.load()] {
                    heard_term = now;
                    listener->chosen();
                }));
            },
            [&](kafka_seat::retire&) {
                leads = false;
                others.store(false);
                tell([](group_leader_listener& to) { to.retire(); });
            },
            [&](kafka_seat::lose& a) {
                leads = false;
                others.store(false);
                set_trouble(a.why);
                tell([why = a.why](group_leader_listener& to) { to.lost(why); });
            },
            [&](kafka_seat::stopped&) {
                over = true;
                home.post(alive.guard([this] {
                    if (auto done = std::exchange(stop_done, nullptr)) done({});
                }));
            },
        },
        what
    );
}

// Apart from the steps, which may run inside a call of the client that is to go.
void kafka_leader::impl::join_or_leave() {
    if (std::exchange(leave_asked, false)) {
        if (client) client->close();
        client.reset();
        in_group.store(false);
        step(kafka_seat::left{});
    }
    if (!std::exchange(join_asked, false) || client) return;
    if (const auto made = make_client(); !made) broken(made.error());
}

void kafka_leader::impl::tell(std::function<void(group_leader_listener&)> what) {
    home.post(alive.guard([this, what = std::move(what)] { what(*listener); }));
}

void kafka_leader::impl::set_trouble(std::optional<error> why) {
    const auto now = home.now();
    if (why && (told_at == mono_time::min() || now - told_at >= tell_trouble_every)) {
        told_at = now;
        home.log().write(
            log_level::warning,
            "leader.trouble",
            {{"group", options.group}, {"code", std::string(name_of(why->code))}, {"detail", why->detail}}
        );
    }
    const std::lock_guard lock(mutex);
    latest_trouble = std::move(why);
}

kafka_leader::kafka_leader(host& home, kafka_leader_options options)
    : impl_(std::make_unique<impl>(home, std::move(options))) {}

kafka_leader::~kafka_leader() = default;

result<void> kafka_leader::start(group_leader_listener& listener) {
    impl_->listener = &listener;
    if (impl_->wake_fd < 0) {
        return fail(
            errc::unavailable,
            "no file descriptor is left for the leader's thread; raise the limit (ulimit -n)"
        );
    }
    if (auto made = impl_->make_client(); !made) return made;
    impl_->thread = std::thread([this] { impl_->run(); });
    return {};
}

void kafka_leader::stop(completion<void> done) {
    if (!impl_->thread.joinable()) {
        impl_->home.post(impl_->alive.guard([done = std::move(done)] { done({}); }));
        return;
    }
    impl_->stop_done = std::move(done);
    impl_->command(kafka_seat::stop{});
}

void kafka_leader::drained() {
    impl_->command(kafka_seat::drained{});
}

void kafka_leader::give_way() {
    impl_->command(kafka_seat::give_way{});
}

mono_time kafka_leader::deadline() const {
    // Of a term that the listener has not been told of yet, nothing is its own.
    if (impl_->heard_term != impl_->term.load()) return mono_time::min();
    return mono_time{nanoseconds{impl_->deadline.load()}};
}

bool kafka_leader::joined() const {
    return impl_->in_group.load();
}

bool kafka_leader::others_wait() const {
    return impl_->others.load();
}

std::optional<error> kafka_leader::trouble() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->latest_trouble;
}

}  // namespace millrace
