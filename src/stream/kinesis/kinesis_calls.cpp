#include "kinesis_calls.hpp"

#include <fmt/format.h>

namespace millrace {

namespace {

using aws::kinesis::wire;

/// Whether an endpoint says so of what it cannot read.
bool refuses_format(const aws::api_failure& failure) {
    return failure.status == 415 || (failure.status == 404 && failure.type.empty()) ||
           failure.type.starts_with("UnsupportedMediaType") ||
           failure.type.starts_with("SerializationException") || failure.type.starts_with("UnknownOperation");
}

}  // namespace

aws::api_failure kinesis_calls::garbled(std::string_view operation, error why) {
    why.detail = fmt::format("{} was answered by nonsense: {}; check the endpoint", operation, why.detail);
    return {std::move(why), {}, {}, {}, 200};
}

void kinesis_calls::send_as(wire format, operation what) {
    aws::api_request request{
        fmt::format("Kinesis_20131202.{}", what.name),
        std::string(aws::kinesis::content_type(format)),
        what.encode(format),
        what.how.repeatable,
        what.how.wait_when_throttled,
        what.how.timeout};
    api_->send(
        std::move(request),
        [this, format, what = std::move(what)](kinesis_outcome<aws::api_reply> came) mutable {
            answered(format, std::move(what), std::move(came));
        }
    );
}

void kinesis_calls::answered(wire format, operation what, kinesis_outcome<aws::api_reply> came) {
    if (!came) {
        if (format == wire::json || !refuses_format(came.error()))
            return what.done(tl::unexpected(std::move(came.error())));
        auto told = std::move(what.done);
        what.done = [this,
                     told = std::move(told),
                     first = std::move(came.error())](kinesis_outcome<kinesis_reply> in_json) {
            if (in_json || (!in_json.error().type.empty() && !refuses_format(in_json.error()))) {
                format_ = wire::json;
                return told(std::move(in_json));
            }
            told(tl::unexpected(first));
        };
        return send_as(wire::json, std::move(what));
    }
    const auto replied = aws::kinesis::wire_of(came->content_type).value_or(format);
    what.done(kinesis_reply{std::move(came->body), replied, came->date});
}

}  // namespace millrace
