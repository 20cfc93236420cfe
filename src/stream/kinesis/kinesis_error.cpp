#include "kinesis_error.hpp"

#include "client/classify.hpp"

#include <string_view>

#include <fmt/format.h>

namespace millrace {

namespace {

bool says(const aws::api_failure& what, std::string_view text) {
    return what.message.find(text) != std::string::npos;
}

bool is_argument(const aws::api_failure& what) {
    return what.type.starts_with("InvalidArgument") || what.type.starts_with("ValidationException");
}

}  // namespace

std::string shown(const kinesis_address& stream) {
    return fmt::format(
        "stream \"{}\" in {}{}",
        stream.stream,
        stream.region,
        stream.endpoint.empty() ? "" : " at " + stream.endpoint
    );
}

error of_stream(const aws::api_failure& what, const kinesis_address& stream) {
    auto why = what.why;
    why.detail = fmt::format("{}: {}", shown(stream), why.detail);
    return why;
}

refusal kind_of(const aws::api_failure& what) {
    if (what.type.starts_with("ResourceNotFound")) return refusal::look_closer;
    // A closed shard's last number, where a position behind it is asked for.
    if (is_argument(what) && says(what, "reached max possible value")) return refusal::shard_end;
    return refusal::plain;
}

error of_shard(
    const aws::api_failure& what, const kinesis_address& stream, const shard_id& shard, bool opening
) {
    auto why = what.why;
    const auto say = [&](errc code, std::string_view meaning) {
        why = {
            code,
            retry_advice::after_delay,
            false,
            fmt::format(
                "shard {} of {}: {} (the service says: {})",
                shard.value(),
                shown(stream),
                meaning,
                aws::shown_message(what.message)
            )};
    };
    if (!opening && is_argument(what)) {
        say(errc::expired_cursor, "the iterator is refused; a new one is made");
    } else if (is_argument(what) && says(what, "did not come from this stream")) {
        say(errc::conflict, "the position is of an older stream of the same name");
    } else if (is_argument(what) && says(what, "It encodes shardId")) {
        say(errc::invalid_argument,
            "the position is of another shard; set the right one by \"millrace group reset\"");
    } else if (is_argument(what) && says(what, "cannot be greater than the currentTimestamp")) {
        say(errc::unavailable, "the moment to start from is still to come; reading begins then");
    } else {
        why.detail = fmt::format("shard {} of {}: {}", shard.value(), shown(stream), why.detail);
    }
    return why;
}

}  // namespace millrace
