/// Kinesis messages as bytes and back, in CBOR or JSON.
///
/// Unknown fields are skipped, missing and null ones left as they were; anything else that does not fit a
/// message is an error, never a guess. Nesting is bounded, and nothing is allocated that the input does not
/// fill. Pure functions; the messages that are known stand at the end of `codec.cpp`.
#pragma once

#include "kinesis/messages.hpp"

#include <millrace/error.hpp>
#include <millrace/record.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::aws::kinesis {

enum class wire : std::uint8_t { cbor, json };

[[nodiscard]] constexpr std::string_view content_type(wire format) noexcept {
    return format == wire::cbor ? "application/x-amz-cbor-1.1" : "application/x-amz-json-1.1";
}

/// Of a reply, by its content type, parameters allowed; nothing when it is neither.
[[nodiscard]] std::optional<wire> wire_of(std::string_view content_type) noexcept;

template <class Message>
[[nodiscard]] std::string encode(const Message& message, wire format);

/// Reads `bytes` into `out`. Views in `out` point into `bytes` afterwards, which may have been replaced; they
/// stay valid when it is moved.
template <class Message>
[[nodiscard]] result<void> decode_into(Message& out, std::string& bytes, wire format);

/// For messages without views.
template <class Message>
[[nodiscard]] result<Message> decode(std::string bytes, wire format) {
    Message out;
    if (auto read = decode_into(out, bytes, format); !read) return tl::unexpected(std::move(read.error()));
    return out;
}

/// The records of a reply, one after the other; false ends the reading with an error.
struct each_record {
    std::function<bool(const stored_record&)> take;
};
using get_records_reply = get_records_reply_with<each_record>;

/// Reads a reply of GetRecords. `take` is given every record in order, with views that `batch` keeps alive,
/// key and data always present. Data are not copied from a reply in CBOR. On an error `batch` is useless.
[[nodiscard]] result<get_records_reply> decode_records(
    std::string bytes, wire format, record_batch& batch, std::function<bool(const record&)> take
);

}  // namespace millrace::aws::kinesis
