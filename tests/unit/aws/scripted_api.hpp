/// An AWS API whose every answer a test gives by hand.
///
/// Requests wait in the order in which they were sent; the test looks at the oldest and answers it. Outcomes
/// are told inside `reply` and `fail`, on the test's thread. Not thread-safe.
#pragma once

#include "api.hpp"

#include <deque>
#include <stdexcept>
#include <string>
#include <utility>

namespace millrace::test {

class scripted_api final : public aws::api {
public:
    scripted_api() = default;
    scripted_api(const scripted_api&) = delete;
    scripted_api& operator=(const scripted_api&) = delete;

    ~scripted_api() override {
        while (!waiting_.empty())
            fail(failure(errc::cancelled, "the request was given up because the process stops"));
    }

    void send(aws::api_request what, aws::api_done done) override {
        waiting_.emplace_back(std::move(what), std::move(done));
    }

    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

    /// The oldest request that has no answer yet.
    [[nodiscard]] const aws::api_request& next() const {
        if (waiting_.empty()) throw std::logic_error("no request waits for an answer");
        return waiting_.front().first;
    }

    /// Answers the oldest request, in its own content type unless another is given.
    void reply(std::string body, wall_time date = {}, std::string content_type = {}) {
        auto [request, done] = take();
        if (content_type.empty()) content_type = request.content_type;
        done(aws::api_reply{std::move(body), std::move(content_type), date});
    }

    void fail(aws::api_failure what) { take().second(tl::unexpected(std::move(what))); }

    /// A failure as the client would tell it.
    [[nodiscard]] static aws::api_failure failure(
        errc code,
        std::string type,
        retry_advice retry = retry_advice::never,
        bool in_doubt = false,
        std::string message = {},
        std::string body = {}
    ) {
        const int status = code == errc::unavailable ? 500 : 400;
        return {{code, retry, in_doubt, type + ": " + message}, type, message, std::move(body), status};
    }

private:
    std::pair<aws::api_request, aws::api_done> take() {
        if (waiting_.empty()) throw std::logic_error("no request waits for an answer");
        auto oldest = std::move(waiting_.front());
        waiting_.pop_front();
        return oldest;
    }

    std::deque<std::pair<aws::api_request, aws::api_done>> waiting_;
};

}  // namespace millrace::test
