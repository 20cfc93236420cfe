/// Sends operations of Kinesis through an `aws::api`: in CBOR, and in JSON once the endpoint has refused
/// CBOR.
///
/// Outcomes are told on the api's thread, where replies are decoded, too; they are complete when the object
/// is gone. Thread-safe, except for its end, which must not be inside an outcome.
#pragma once

#include "api.hpp"
#include "kinesis/codec.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {

struct kinesis_reply {
    std::string body;
    aws::kinesis::wire format;
    wall_time date;  ///< By the service's clock, in whole seconds.
};

template <class T>
using kinesis_outcome = tl::expected<T, aws::api_failure>;

class kinesis_calls {
public:
    struct options {
        bool repeatable{true};
        bool wait_when_throttled{true};
        milliseconds timeout{10'000};
    };

    explicit kinesis_calls(std::unique_ptr<aws::api> api) : api_(std::move(api)) {}
    kinesis_calls(const kinesis_calls&) = delete;
    kinesis_calls& operator=(const kinesis_calls&) = delete;
    ~kinesis_calls() = default;

    /// `request` keeps alive what it views.
    template <class Request>
    void send(Request request, const options& how, std::function<void(kinesis_outcome<kinesis_reply>)> done) {
        send_as(
            format_,
            {Request::operation,
             [request = std::make_shared<const Request>(std::move(request))](aws::kinesis::wire format) {
                 return aws::kinesis::encode(*request, format);
             },
             how,
             std::move(done)}
        );
    }

    /// The same, with the reply decoded.
    template <class Reply, class Request>
    void call(
        Request request,
        const options& how,
        std::function<void(kinesis_outcome<std::pair<Reply, wall_time>>)> done
    ) {
        send(std::move(request), how, [done = std::move(done)](kinesis_outcome<kinesis_reply> came) {
            if (!came) return done(tl::unexpected(std::move(came.error())));
            auto reply = aws::kinesis::decode<Reply>(std::move(came->body), came->format);
            if (!reply) return done(tl::unexpected(garbled(Request::operation, std::move(reply.error()))));
            done(std::pair(std::move(*reply), came->date));
        });
    }

    /// The failure of a reply that could not be read.
    [[nodiscard]] static aws::api_failure garbled(std::string_view operation, error why);

private:
    struct operation {
        std::string_view name;
        std::function<std::string(aws::kinesis::wire)> encode;
        options how;
        std::function<void(kinesis_outcome<kinesis_reply>)> done;
    };

    void send_as(aws::kinesis::wire format, operation what);
    void answered(aws::kinesis::wire format, operation what, kinesis_outcome<aws::api_reply> came);

    std::atomic<aws::kinesis::wire> format_{aws::kinesis::wire::cbor};
    std::unique_ptr<aws::api> api_;  // the last one: its end completes requests, which use the others
};

}  // namespace millrace
