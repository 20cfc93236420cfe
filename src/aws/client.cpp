#include "client.hpp"

#include "assert.hpp"
#include "authorities.hpp"
#include "client/attempts.hpp"
#include "client/endpoint.hpp"
#include "client/judge.hpp"
#include "curl_http.hpp"
#include "overload.hpp"
#include "signing/sign.hpp"

#include <chrono>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

mono_time steady_now() {
    return mono_time(std::chrono::steady_clock::now().time_since_epoch());
}

wall_time machine_now() {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
}

api_failure without_reply(errc code, retry_advice retry, std::string detail) {
    return {{code, retry, false, std::move(detail)}, {}, {}, {}, 0};
}

/// A request from `send` to its outcome.
struct call {
    call(api_request request, api_done on_done, const attempt_options& options, mono_time until)
        : what(std::move(request)), done(std::move(on_done)), plan(options, until), deadline(until) {}

    api_request what;
    api_done done;
    attempts plan;
    mono_time deadline;
    aws_keys keys;           ///< Of the latest attempt.
    milliseconds offset{0};  ///< The same.
    api_failure last;        ///< Of the latest attempt, while other keys are waited for.
    bool renewing{false};
    bool without_keys{false};  ///< They were asked for and have not come.
};

/// On its way from `send` to the thread.
struct arrival {
    std::uint64_t id{0};
    std::shared_ptr<call> made;
    bool too_many{false};
};

/// The way to the thread. Keys may come, on a thread of their source, while the client ends: what waits for
/// them holds this alone, so that neither the client nor the source ends on the source's own thread.
struct way_in {
    /// Any thread. Dropped when the client ends.
    void call(std::function<void()> what) {
        const std::lock_guard lock(mutex);
        if (transport) transport->call_after(milliseconds{0}, std::move(what));
    }
    [[nodiscard]] bool is_open() {
        const std::lock_guard lock(mutex);
        return transport != nullptr;
    }

    std::mutex mutex;
    std::unique_ptr<curl_http> transport;  // guarded; null once the client ends
};

}  // namespace

struct client::impl {
    using call_id = std::uint64_t;

    impl(client_options given, std::shared_ptr<key_source> source);

    void take_arrivals();
    void get_keys(call_id id);
    void have_keys(call_id id, result<aws_keys> keys);
    void keys_late(call_id id);
    void transmit(call_id id, call& which);
    [[nodiscard]] http_request signed_request(const call& which);
    void answered(call_id id, result<http_reply> came);
    void follow(call_id id, call& which, failed_attempt failed);
    void tell(call_id id, tl::expected<api_reply, api_failure> outcome);
    void end();

    client_options options;
    std::shared_ptr<key_source> keys;
    endpoint target;

    std::shared_ptr<way_in> way;
    std::size_t open{0};            // guarded by way->mutex
    call_id last_id{0};             // the same
    std::vector<arrival> arriving;  // the same; what is still here at the end is told of it

    curl_http* transport{nullptr};  // for its own thread, as all below
    std::unordered_map<call_id, std::shared_ptr<call>> calls;
    retry_budget budget;
    signer signs;
    milliseconds offset{0};  ///< Of the service's clock from this machine's.
    std::mt19937_64 random{std::random_device()()};
};

client::impl::impl(client_options given, std::shared_ptr<key_source> source)
    : options(std::move(given)),
      keys(std::move(source)),
      way(std::make_shared<way_in>()),
      budget(options.retries_in_store),
      signs(options.region, options.service) {
    way->transport = std::make_unique<curl_http>(with_authorities(
        {.connections_max = options.connections_max,
         .requests_max = options.requests_max,
         .reply_bytes_max = options.reply_bytes_max,
         .connect_timeout = options.connect_timeout,
         .stall_timeout = options.stall_timeout,
         .ca_file = options.ca_file}
    ));
    transport = way->transport.get();
    auto parsed = parse_endpoint(
        options.endpoint.empty() ? endpoint_of(options.service, options.region) : options.endpoint
    );
    MILLRACE_ASSERT(parsed.has_value());
    target = std::move(*parsed);
}

void client::impl::take_arrivals() {
    std::vector<arrival> taken;
    {
        const std::lock_guard lock(way->mutex);
        std::swap(taken, arriving);
    }
    for (auto& each : taken) {
        if (each.too_many) {
            each.made->done(tl::unexpected(without_reply(
                errc::throttled,
                retry_advice::after_delay,
                "too many requests to AWS are waiting; the service is slower than the work, try again later"
            )));
            continue;
        }
        calls.emplace(each.id, std::move(each.made));
        get_keys(each.id);
    }
}

void client::impl::get_keys(call_id id) {
    calls.at(id)->without_keys = true;
    const auto thread = std::this_thread::get_id();
    keys->get([this, in = way, id, thread](result<aws_keys> given) {
        if (std::this_thread::get_id() == thread && in->is_open()) return have_keys(id, std::move(given));
        in->call([this, id, given = std::move(given)] { have_keys(id, given); });
    });
    const auto found = calls.find(id);  // keys that are there were told inside
    if (found == calls.end() || !found->second->without_keys) return;
    const auto left = std::chrono::ceil<milliseconds>(found->second->deadline - steady_now());
    transport->call_after(std::max(left, milliseconds{0}), [this, id] {
        const auto late = calls.find(id);
        if (late != calls.end() && late->second->without_keys) keys_late(id);
    });
}

void client::impl::keys_late(call_id id) {
    tell(
        id,
        tl::unexpected(without_reply(
            errc::unavailable,
            retry_advice::after_delay,
            fmt::format(
                "{} was not sent to {}: no keys came in its time; credentials.failed in the log says why, "
                "and without one this machine or the service is too slow",
                calls.at(id)->what.operation,
                target.host
            )
        ))
    );
}

void client::impl::have_keys(call_id id, result<aws_keys> given) {
    const auto found = calls.find(id);
    if (found == calls.end()) return;  // too late, or the source told twice
    auto& which = *found->second;
    if (!std::exchange(which.without_keys, false)) return;
    if (!given) {
        auto why = std::move(given.error());
        const auto kind = why.code == errc::unavailable ? failure_class::transient : failure_class::final;
        why.in_doubt = false;
        which.renewing = false;
        return follow(id, which, {{std::move(why), {}, {}, {}, 0}, {kind, false, false}, {}});
    }
    const bool same = which.renewing && *given == which.keys;
    which.renewing = false;
    if (same) return tell(id, tl::unexpected(std::move(which.last)));
    if (steady_now() >= which.deadline) return keys_late(id);
    which.keys = std::move(*given);
    transmit(id, which);
}

http_request client::impl::signed_request(const call& which) {
    http_request out;
    out.method = "POST";
    out.url = target.url;
    out.body = which.what.body;
    out.repeatable = which.what.repeatable;
    out.headers = {
        {"Host", target.host},
        {"Content-Type", which.what.content_type},
        {"X-Amz-Target", which.what.operation}};
    auto added = signs.sign(
        {.method = out.method, .path = target.path, .query = {}, .headers = out.headers, .body = out.body},
        which.keys,
        machine_now() + which.offset
    );
    out.headers.erase(out.headers.begin());  // the transport sends it
    out.headers.insert(
        out.headers.end(), std::make_move_iterator(added.begin()), std::make_move_iterator(added.end())
    );
    return out;
}

void client::impl::transmit(call_id id, call& which) {
    which.offset = offset;
    auto request = signed_request(which);
    request.timeout =
        std::max(milliseconds{1}, std::chrono::ceil<milliseconds>(which.deadline - steady_now()));
    transport->send(std::move(request), [this, id](result<http_reply> came) {
        answered(id, std::move(came));
    });
}

void client::impl::answered(call_id id, result<http_reply> came) {
    auto& which = *calls.at(id);
    auto judged = judge(
        std::move(came),
        {.operation = which.what.operation,
         .host = target.host,
         .received = machine_now(),
         .offset = which.offset}
    );
    if (!judged) return follow(id, which, std::move(judged.error()));
    budget.succeeded();
    tell(id, std::move(*judged));
}

void client::impl::follow(call_id id, call& which, failed_attempt failed) {
    if (failed.what.clock_was_wrong) offset = *failed.offset;
    if (failed.what.kind == failure_class::expired_keys) keys->refused(which.keys);
    std::visit(
        overload{
            [&](const attempts::tell& over) {
                failed.failure.why.in_doubt = over.in_doubt;
                if (over.gave_up && which.plan.made() > 1) {
                    failed.failure.why.detail += fmt::format(" (after {} attempts)", which.plan.made());
                }
                tell(id, tl::unexpected(std::move(failed.failure)));
            },
            [&](const attempts::again& next) {
                if (next.pause.count() == 0) return get_keys(id);
                transport->call_after(std::chrono::ceil<milliseconds>(next.pause), [this, id] {
                    get_keys(id);
                });
            },
            [&](const attempts::other_keys&) {
                which.renewing = true;
                which.last = std::move(failed.failure);
                which.last.why.in_doubt = false;
                get_keys(id);
            }},
        which.plan.failed(steady_now(), failed.what, budget, random())
    );
}

void client::impl::tell(call_id id, tl::expected<api_reply, api_failure> outcome) {
    const auto over = calls.extract(id);
    {
        const std::lock_guard lock(way->mutex);
        --open;
    }
    over.mapped()->done(std::move(outcome));
}

void client::impl::end() {
    std::unique_ptr<curl_http> ending;
    {
        const std::lock_guard lock(way->mutex);
        ending = std::move(way->transport);
    }
    ending.reset();
    const auto cancelled = [] {
        return tl::unexpected(without_reply(
            errc::cancelled, retry_advice::never, "the request was given up because the process stops"
        ));
    };
    for (std::vector<arrival> late;; late.clear()) {  // what is told may send again
        while (!calls.empty())
            tell(calls.begin()->first, cancelled());
        {
            const std::lock_guard lock(way->mutex);
            std::swap(late, arriving);
        }
        if (late.empty()) return;
        for (const auto& each : late)
            each.made->done(cancelled());
    }
}

client::client(client_options options, std::shared_ptr<key_source> keys)
    : impl_(std::make_unique<impl>(std::move(options), std::move(keys))) {}

client::~client() {
    impl_->end();
}

void client::send(api_request what, api_done done) {
    const auto deadline = steady_now() + what.timeout;
    const auto& o = impl_->options;
    const attempt_options plan{
        .attempts_max = o.attempts_max,
        .throttled_pause = o.throttled_pause,
        .transient_pause = o.transient_pause,
        .pause_max = o.pause_max,
        .repeatable = what.repeatable,
        .wait_when_throttled = what.wait_when_throttled};
    auto made = std::make_shared<call>(std::move(what), std::move(done), plan, deadline);

    const std::lock_guard lock(impl_->way->mutex);
    const bool too_many = impl_->open >= o.requests_max;
    if (!too_many) ++impl_->open;
    impl_->arriving.push_back({++impl_->last_id, std::move(made), too_many});
    // An outcome that sends while the client ends finds no thread: `end` tells what arrived.
    if (auto* const transport = impl_->way->transport.get())
        transport->call_after(milliseconds{0}, [me = impl_.get()] { me->take_arrivals(); });
}

result<void> client_options::validate() const {
    const auto wrong = [](std::string_view field, auto value, std::string_view limit) {
        return fail(errc::invalid_argument, fmt::format("{} is {}, but {}", field, value, limit));
    };
    if (service.empty()) return wrong("service", "empty", "an AWS service must be named");
    if (region.empty())
        return wrong("region", "empty", "requests are signed for a region, such as eu-west-1");
    if (region.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
        return wrong("region", "malformed", "it has small letters, digits and hyphens only");
    }
    if (!endpoint.empty()) {
        if (auto parsed = parse_endpoint(endpoint); !parsed) return tl::unexpected(std::move(parsed.error()));
    }
    if (connections_max < 1 || connections_max > 1'024) {
        return wrong("connections_max", connections_max, "must be from 1 to 1024");
    }
    if (requests_max < 1) return wrong("requests_max", requests_max, "must be at least 1");
    if (reply_bytes_max < 1) return wrong("reply_bytes_max", reply_bytes_max, "must be at least 1");
    if (attempts_max < 1) return wrong("attempts_max", attempts_max, "must be at least 1");
    const std::pair<std::string_view, milliseconds> above_zero[]{
        {"connect_timeout", connect_timeout},
        {"stall_timeout", stall_timeout},
        {"throttled_pause", throttled_pause},
        {"transient_pause", transient_pause},
        {"pause_max", pause_max}};
    for (const auto& [field, value] : above_zero) {
        if (value.count() < 1) return wrong(field, value.count(), "must be at least 1 ms");
    }
    return {};
}

}  // namespace millrace::aws
