#include "credentials/ask.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace::aws {

namespace {

/// Where a reply arrives, also one that nobody waits for any more.
struct letter_box {
    std::mutex mutex;
    std::condition_variable_any arrival;
    std::optional<result<http_reply>> reply;  // guarded
};

tl::unexpected<error> stopped() {
    return fail(errc::cancelled, "the search for AWS credentials was given up because the process stops");
}

void pause_for(milliseconds time, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, time, [&] { return stop.stop_requested(); });
}

bool may_pass(const result<http_reply>& reply) {
    if (!reply) return reply.error().code != errc::cancelled;
    return reply->status == 429 || reply->status >= 500;
}

}  // namespace

result<http_reply> ask(http& by, const http_request& what, const std::stop_token& stop) {
    if (stop.stop_requested()) return stopped();
    const auto box = std::make_shared<letter_box>();
    by.send(what, [box](result<http_reply> reply) {
        {
            const std::lock_guard lock(box->mutex);
            box->reply = std::move(reply);
        }
        box->arrival.notify_one();
    });
    std::unique_lock lock(box->mutex);
    if (!box->arrival.wait(lock, stop, [&] { return box->reply.has_value(); })) return stopped();
    return std::move(*box->reply);
}

result<http_reply> ask_again(
    http& by, const http_request& what, persistence how, const std::stop_token& stop
) {
    auto reply = ask(by, what, stop);
    for (; how.attempts > 1 && may_pass(reply); --how.attempts, how.pause *= 2) {
        pause_for(how.pause, stop);
        reply = ask(by, what, stop);
    }
    return reply;
}

tl::unexpected<error> refused_by(std::string_view who, const http_reply& reply) {
    const auto code =
        reply.status == 401 || reply.status == 403 ? errc::permission_denied : errc::unavailable;
    return fail(
        code,
        fmt::format("{} gives no AWS credentials: it answers with status {}", who, reply.status),
        retry_advice::after_delay
    );
}

tl::unexpected<error> unanswered_by(std::string_view who, error why) {
    if (why.code != errc::cancelled)
        why.detail = fmt::format("{} gives no AWS credentials: {}", who, why.detail);
    why.in_doubt = false;  // asking has no effect
    return tl::unexpected(std::move(why));
}

}  // namespace millrace::aws
