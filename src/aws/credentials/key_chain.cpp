#include "credentials/key_chain.hpp"

#include "authorities.hpp"
#include "credentials/origins.hpp"
#include "credentials/profiles.hpp"
#include "curl_http.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::aws {

namespace {

mono_time boot_now() {
    ::timespec t{};
    ::clock_gettime(CLOCK_BOOTTIME, &t);
    return mono_time{std::chrono::seconds{t.tv_sec} + nanoseconds{t.tv_nsec}};
}

wall_time wall_now() {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
}

/// How long they still last; keys for longer than a year are taken for keys without an end.
std::optional<nanoseconds> left_of(const aws_keys& keys) {
    constexpr std::chrono::hours year{24 * 365};
    if (!keys.expires || *keys.expires - wall_now() > year) return std::nullopt;
    return std::max<milliseconds>(*keys.expires - wall_now(), -year);
}

curl_http_options http_options(const key_chain_options& options) {
    curl_http_options out;
    out.connections_max = 2;
    out.requests_max = 8;
    out.reply_bytes_max = std::size_t{256} << 10;
    out.ca_file = options.ca_file;
    return with_authorities(std::move(out));
}

/// Nobody set anything up, and there is no instance either.
error none_found(error why) {
    if (why.code == errc::cancelled) return why;
    why.code = errc::permission_denied;
    why.detail =
        "there are no AWS credentials in the environment or the shared files, and " + why.detail +
        "; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or another of the places that "
        "AWS's programs look into";
    return why;
}

}  // namespace

struct key_chain::impl {
    using done = std::function<void(result<aws_keys>)>;
    using answers = std::vector<std::pair<done, result<aws_keys>>>;

    impl(key_chain_options given, log_sink& to)
        : options(std::move(given)),
          log(to),
          machine(
              options.refreshing,
              [random = std::mt19937_64(std::random_device{}())]() mutable { return random(); }
          ),
          http(http_options(options)),
          thread([this](const std::stop_token& stop) { loop(stop); }) {}

    void take(const key_refresh::event& what, done asking = nullptr);
    [[nodiscard]] answers carry_out(const std::vector<key_refresh::action>& actions);
    void keep_time();
    void loop(const std::stop_token& stop);
    [[nodiscard]] key_refresh::event fetch(const std::stop_token& stop);
    void note_found(const key_plan& plan, const aws_keys& keys);

    const key_chain_options options;
    log_sink& log;
    std::string source;  // the thread's: where the keys came from

    std::mutex mutex;
    std::condition_variable_any wake;
    key_refresh machine;  // guarded, as those below
    std::map<key_refresh::ask_id, done> waiting;
    key_refresh::ask_id last_id{0};
    bool must_fetch{false};
    mono_time timer_at{mono_time::max()};  // the next that is set

    curl_http http;       // ends before what its timers use
    std::jthread thread;  // ends before what it asks by
};

key_chain::key_chain(key_chain_options options, log_sink& log)
    : impl_(std::make_unique<impl>(std::move(options), log)) {}

key_chain::~key_chain() {
    impl_->thread.request_stop();
    impl_->thread.join();
    decltype(impl_->waiting) waiting;
    {
        const std::lock_guard lock(impl_->mutex);
        waiting = std::exchange(impl_->waiting, {});
    }
    for (auto& [id, done] : waiting)
        done(fail(errc::cancelled, "AWS credentials are no longer waited for because the process stops"));
}

void key_chain::get(std::function<void(result<aws_keys>)> done) {
    impl_->take(key_refresh::asked{}, std::move(done));
}

void key_chain::refused(const aws_keys& which) {
    impl_->take(key_refresh::refused{which});
}

/// Lets the machine take one event, and tells those whose wait is over, without the lock.
void key_chain::impl::take(const key_refresh::event& what, done asking) {
    answers told;
    {
        const std::lock_guard lock(mutex);
        if (asking) {
            waiting.emplace(++last_id, std::move(asking));
            told = carry_out(machine.step(boot_now(), key_refresh::asked{last_id}));
        } else {
            told = carry_out(machine.step(boot_now(), what));
        }
        keep_time();
    }
    for (auto& [asker, outcome] : told)
        asker(std::move(outcome));
}

key_chain::impl::answers key_chain::impl::carry_out(const std::vector<key_refresh::action>& actions) {
    answers told;
    for (const auto& action : actions) {
        const auto* give = std::get_if<key_refresh::give>(&action);
        if (give == nullptr) {
            must_fetch = true;
            wake.notify_one();
            continue;
        }
        for (const auto id : give->to) {
            const auto found = waiting.find(id);
            if (found == waiting.end()) continue;  // cancelled meanwhile
            told.emplace_back(std::move(found->second), give->outcome);
            waiting.erase(found);
        }
    }
    return told;
}

/// Sets a timer where none comes early enough. It looks each minute, so that a sleep of the machine counts.
void key_chain::impl::keep_time() {
    const auto due = machine.wake();
    if (!due) return;
    const auto now = boot_now();
    const auto at = std::clamp(*due, now, now + std::chrono::minutes{1});
    if (at >= timer_at) return;
    timer_at = at;
    http.call_after(std::chrono::ceil<milliseconds>(at - now), [this, at] {
        {
            const std::lock_guard lock(mutex);
            if (at != timer_at) return;  // an earlier one took its place
            timer_at = mono_time::max();
        }
        take(key_refresh::timer{});
    });
}

void key_chain::impl::loop(const std::stop_token& stop) {
    for (;;) {
        {
            std::unique_lock lock(mutex);
            if (!wake.wait(lock, stop, [this] { return must_fetch; })) return;
            must_fetch = false;
        }
        take(fetch(stop));
    }
}

key_refresh::event key_chain::impl::fetch(const std::stop_token& stop) {
    const auto plan = plan_keys(
        options.variables, [this] { return read_profiles(options.variables); }, options.region
    );
    auto keys = plan ? fetch_keys(*plan, {http, options.fetching, wall_now, stop})
                     : result<aws_keys>(tl::unexpected(plan.error()));
    if (!keys) {
        if (plan && plan->last_resort && source.empty()) keys.error() = none_found(std::move(keys.error()));
        if (keys.error().code != errc::cancelled)
            log.write(log_level::warning, "credentials.failed", {{"error", keys.error().detail}});
        return key_refresh::failed{std::move(keys.error())};
    }
    note_found(*plan, *keys);
    return key_refresh::fetched{*keys, left_of(*keys), plan->may_outlive_expiry()};
}

void key_chain::impl::note_found(const key_plan& plan, const aws_keys& keys) {
    const auto left = left_of(keys);
    if (left && *left <= nanoseconds::zero()) {
        return log.write(
            log_level::warning,
            "credentials.over",
            {{"source", plan.name},
             {"detail", "their end is past, so they are renewed as soon as the source has others"}}
        );
    }
    const auto level = source == plan.name ? log_level::debug : log_level::info;
    source = plan.name;
    log.write(
        level,
        "credentials.found",
        {{"source", source},
         {"lasts_s",
          left ? std::to_string(std::chrono::floor<std::chrono::seconds>(*left).count()) : "always"}}
    );
}

}  // namespace millrace::aws
