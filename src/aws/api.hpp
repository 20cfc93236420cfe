/// A request to an AWS API as adapters see it: an operation, a body, and one outcome.
///
/// What stands behind it signs, sends, judges failures and repeats what may be repeated (`client.hpp`);
/// bodies are the caller's to encode and decode.
#pragma once

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <functional>
#include <string>

namespace millrace::aws {

/// One request with a JSON or CBOR body, before it is signed.
struct api_request {
    std::string operation;     ///< The header X-Amz-Target: "Kinesis_20131202.GetRecords".
    std::string content_type;  ///< "application/x-amz-cbor-1.1".
    std::string body;

    /// May be sent again when its reply was lost. False for what must not take effect twice (PutRecords,
    /// conditional writes): then such a loss is a failure with `in_doubt`, at once.
    bool repeatable{true};

    /// False: throttling is told at once, for callers that have a pace of their own.
    bool wait_when_throttled{true};

    milliseconds timeout{10'000};  ///< Over all attempts and the pauses between them.
};

struct api_reply {
    std::string body;  ///< Its checksum is right, where the service gave one.
    std::string content_type;
    wall_time date;  ///< By the service's clock, in whole seconds; of this machine where it did not say.
};

/// What went wrong, with what the service said.
struct api_failure {
    error why;            ///< Code, whether and when to try again, and whether it may have taken effect.
    std::string type;     ///< "ExpiredIteratorException", without namespace; empty when no service answered.
    std::string message;  ///< Of the service; may be empty.
    std::string body;     ///< Of the error reply: holds a failed condition's Item.
    int status{0};        ///< Of HTTP; 0 without a reply.
};

using api_done = std::function<void(tl::expected<api_reply, api_failure>)>;

class api {
public:
    virtual ~api() = default;

    /// Thread-safe. `done` is called once, on a thread of the implementation (decode there, then post to the
    /// host), never inside this call; after the implementation's end with `cancelled`.
    virtual void send(api_request what, api_done done) = 0;
};

}  // namespace millrace::aws
