#include "curl_http.hpp"

#include "assert.hpp"
#include "transfer.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

namespace millrace {

namespace {

using steady = std::chrono::steady_clock;

struct curl_multi_deleter {
    void operator()(CURLM* handle) const noexcept { curl_multi_cleanup(handle); }
};

void start_libcurl() {
    static const auto started = curl_global_init(CURL_GLOBAL_DEFAULT);
    MILLRACE_ASSERT(started == CURLE_OK);
}

/// What other threads give to this one.
struct asked_request {
    http_request what;
    http_done done;
    steady_time deadline;
    bool refused{false};  ///< Too many wait.
};
struct asked_call {
    steady_time when;
    std::function<void()> what;
};
using asked = std::variant<asked_request, asked_call>;

error give_up(errc code, const char* why) {
    const auto retry = code == errc::cancelled ? retry_advice::never : retry_advice::after_delay;
    return {code, retry, false, why};
}

}  // namespace

struct curl_http::impl {
    explicit impl(curl_http_options given) : options(std::move(given)) {}

    void ask(asked what);
    void run();
    void take_asked();
    void wait(asked_request what);
    void run_timers();
    void begin_waiting();
    void give_up_on(transfer& which, const char* why);
    void give_up_on_stalled();
    void finish_done();
    void complete(transfer& which, result<http_reply> outcome);
    void poll();
    void cancel_all();

    /// A request that no handle carries yet.
    struct waiting_request {
        asked_request asked_for;
        timers::iterator deadline;
        bool dropped{false};  ///< Its deadline has passed.
    };

    curl_http_options options;
    std::unique_ptr<CURLM, curl_multi_deleter> multi;

    std::mutex mutex;
    std::vector<asked> incoming;  // guarded
    std::size_t open{0};          // guarded; requests that are not complete
    bool stop{false};             // guarded

    std::vector<asked> taken;  // the thread's, as all below
    timers timed;
    std::deque<std::shared_ptr<waiting_request>> waiting;
    std::vector<std::unique_ptr<transfer>> under_way;
    std::vector<std::unique_ptr<transfer>> idle;

    std::thread thread;
};

curl_http::curl_http(curl_http_options options) : impl_(std::make_unique<impl>(std::move(options))) {
    start_libcurl();
    auto& me = *impl_;
    MILLRACE_ASSERT(me.options.connections_max >= 1 && me.options.requests_max >= 1);
    me.multi.reset(curl_multi_init());
    if (!me.multi) throw std::bad_alloc();
    const auto connections = static_cast<long>(me.options.connections_max);
    curl_multi_setopt(me.multi.get(), CURLMOPT_MAX_HOST_CONNECTIONS, connections);
    curl_multi_setopt(me.multi.get(), CURLMOPT_MAXCONNECTS, connections);
    curl_multi_setopt(me.multi.get(), CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    me.thread = std::thread([&me] { me.run(); });
}

curl_http::~curl_http() {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->stop = true;
    }
    curl_multi_wakeup(impl_->multi.get());
    impl_->thread.join();
}

void curl_http::send(http_request what, http_done done) {
    const auto deadline = steady::now() + what.timeout;
    impl_->ask(asked_request{std::move(what), std::move(done), deadline});
}

void curl_http::call_after(milliseconds pause, std::function<void()> what) {
    impl_->ask(asked_call{steady::now() + pause, std::move(what)});
}

void curl_http::impl::ask(asked what) {
    bool first = false;
    {
        const std::lock_guard lock(mutex);
        if (auto* const request = std::get_if<asked_request>(&what)) {
            request->refused = open >= options.requests_max;
            ++open;
        }
        first = incoming.empty();
        incoming.push_back(std::move(what));
    }
    // Its own thread looks before it sleeps.
    if (first && std::this_thread::get_id() != thread.get_id()) curl_multi_wakeup(multi.get());
}

void curl_http::impl::run() {
    for (;;) {
        {
            const std::lock_guard lock(mutex);
            if (stop) break;
            std::swap(taken, incoming);
        }
        take_asked();
        run_timers();
        begin_waiting();
        int running = 0;
        curl_multi_perform(multi.get(), &running);
        finish_done();
        give_up_on_stalled();
        poll();
    }
    cancel_all();
}

void curl_http::impl::take_asked() {
    for (auto& each : taken) {
        if (auto* const call = std::get_if<asked_call>(&each)) {
            timed.emplace(call->when, std::move(call->what));
        } else {
            wait(std::move(std::get<asked_request>(each)));
        }
    }
    taken.clear();
}

void curl_http::impl::wait(asked_request what) {
    if (what.refused) {
        {
            const std::lock_guard lock(mutex);
            --open;
        }
        what.done(tl::unexpected(
            give_up(errc::throttled, "too many requests wait for a connection; try again later")
        ));
        return;
    }
    auto request = std::make_shared<waiting_request>(waiting_request{std::move(what), timed.end()});
    request->deadline = timed.emplace(request->asked_for.deadline, [this, request] {
        request->dropped = true;
        request->asked_for.what = {};
        {
            const std::lock_guard lock(mutex);
            --open;
        }
        request->asked_for.done(tl::unexpected(give_up(
            errc::unavailable, "no connection became free in time; the service is slower than the work"
        )));
    });
    waiting.push_back(std::move(request));
}

void curl_http::impl::run_timers() {
    const auto now = steady::now();
    while (!timed.empty() && timed.begin()->first <= now) {
        const auto what = std::move(timed.begin()->second);
        timed.erase(timed.begin());
        what();
    }
}

void curl_http::impl::begin_waiting() {
    // libcurl would send new requests on a silent connection as long as one is there that waits on it.
    const bool some_forsaken =
        std::any_of(under_way.begin(), under_way.end(), [](const auto& each) { return each->is_forsaken(); });
    while (!waiting.empty() && under_way.size() < options.connections_max) {
        const auto next = std::move(waiting.front());
        waiting.pop_front();
        if (next->dropped) continue;
        timed.erase(next->deadline);
        if (idle.empty()) idle.push_back(std::make_unique<transfer>(options));
        auto* const carrier = under_way.emplace_back(std::move(idle.back())).get();
        idle.pop_back();
        carrier->done = std::move(next->asked_for.done);
        carrier->begin(std::move(next->asked_for.what), some_forsaken);
        carrier->deadline = timed.emplace(next->asked_for.deadline, [this, carrier] {
            carrier->deadline = timed.end();
            give_up_on(*carrier, "it took longer than its limit");
        });
        const auto added = curl_multi_add_handle(multi.get(), carrier->handle());
        MILLRACE_ASSERT(added == CURLM_OK);
    }
}

void curl_http::impl::give_up_on(transfer& which, const char* why) {
    which.forsake_connection();
    curl_multi_remove_handle(multi.get(), which.handle());
    complete(which, tl::unexpected(which.given_up(errc::unavailable, why)));
}

// libcurl's own limit of speed looks at an average, and so answers up to 5 s late.
void curl_http::impl::give_up_on_stalled() {
    const auto now = steady::now();
    const auto stalls = [&](const auto& which) { return which->stalls_at(options.stall_timeout) <= now; };
    for (const auto& which : under_way) {
        if (!stalls(which)) continue;
        for (const auto& other : under_way)
            which->hear_of(*other);
        if (!stalls(which)) continue;
        for (const auto& other : under_way) {
            if (which->shares_connection_with(*other)) other->forsake_connection();
        }
        which->forsake_connection();
    }
    for (std::size_t i = 0; i < under_way.size();) {
        auto& which = *under_way[i];
        if (which.is_forsaken() && which.may_go_twice()) {
            give_up_on(which, "no byte moved for too long");  // another one takes its place
        } else {
            ++i;
        }
    }
}

void curl_http::impl::finish_done() {
    int left = 0;
    while (const auto* const message = curl_multi_info_read(multi.get(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        auto* const handle = message->easy_handle;
        const auto how = message->data.result;  // gone when the handle is removed
        transfer* which = nullptr;
        curl_easy_getinfo(handle, CURLINFO_PRIVATE, &which);
        curl_multi_remove_handle(multi.get(), handle);
        complete(*which, which->end(how));
    }
}

void curl_http::impl::complete(transfer& which, result<http_reply> outcome) {
    if (which.deadline != timed.end()) timed.erase(which.deadline);
    const auto done = std::move(which.done);
    const auto at = std::find_if(under_way.begin(), under_way.end(), [&](const auto& each) {
        return each.get() == &which;
    });
    MILLRACE_ASSERT(at != under_way.end());
    for (const auto& other : under_way)
        other->hear_of(which);
    which.clear();
    idle.push_back(std::move(*at));
    *at = std::move(under_way.back());
    under_way.pop_back();
    {
        const std::lock_guard lock(mutex);
        --open;
    }
    done(std::move(outcome));
}

void curl_http::impl::poll() {
    {
        const std::lock_guard lock(mutex);
        if (stop || !incoming.empty()) return;
    }
    if (!waiting.empty() && under_way.size() < options.connections_max) return;
    constexpr auto longest = std::chrono::milliseconds{60'000};
    auto until = steady::now() + longest;
    if (!timed.empty()) until = std::min(until, timed.begin()->first);
    for (const auto& each : under_way)
        until = std::min(until, each->stalls_at(options.stall_timeout));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady::now());
    const auto pause = std::max(left, std::chrono::milliseconds{0});
    curl_multi_poll(multi.get(), nullptr, 0, static_cast<int>(pause.count()), nullptr);
}

void curl_http::impl::cancel_all() {
    constexpr auto why = "the request was given up because the process stops";
    timed.clear();
    for (auto& each : under_way)
        each->deadline = timed.end();
    for (;;) {  // what is told may send again
        while (!under_way.empty()) {
            auto& last = *under_way.back();
            curl_multi_remove_handle(multi.get(), last.handle());
            complete(last, tl::unexpected(last.given_up(errc::cancelled, why)));
        }
        while (!waiting.empty()) {
            const auto next = std::move(waiting.front());
            waiting.pop_front();
            if (!next->dropped) next->asked_for.done(tl::unexpected(give_up(errc::cancelled, why)));
        }
        {
            const std::lock_guard lock(mutex);
            std::swap(taken, incoming);
        }
        if (taken.empty()) return;
        for (auto& each : taken) {
            auto* const request = std::get_if<asked_request>(&each);
            if (request != nullptr) request->done(tl::unexpected(give_up(errc::cancelled, why)));
        }
        taken.clear();
    }
}

}  // namespace millrace
