#include "kinesis/codec.hpp"
#include "kinesis/write_messages.hpp"
#include "kinesis_url.hpp"
#include "record/kpl.hpp"
#include "targets.hpp"

#include <string>

namespace millrace::fuzz {

namespace {

using namespace aws::kinesis;

/// What was read is written so that it is read the same again, in both formats.
template <class Message>
void goes_around(const std::string& bytes, wire format) {
    auto input = bytes;
    Message message;
    if (const auto read = decode_into(message, input, format); !read) {
        require(!read.error().detail.empty(), "nonsense is named");
        return;
    }
    const auto once = encode(message, wire::cbor);
    auto copy = once;
    Message again;
    require(decode_into(again, copy, wire::cbor).has_value(), "what was written can be read");
    require(encode(again, wire::cbor) == once, "and is the same");
}

void records(const std::string& bytes, wire format) {
    record_batch batch{shard_id{"s"}};
    kpl_opener opener;
    std::size_t seen = 0;
    const auto reply = decode_records(bytes, format, batch, [&](const record& r) {
        require(r.key && r.data, "a record has key and data");
        ++seen;
        opener.add(batch, r, {});
        return true;
    });
    if (!reply) return;
    require(batch.records().size() >= seen - opener.totals().aggregates, "no record is lost");
    std::size_t sum = 0;
    for (const auto& r : batch.records()) {
        for (const char c : *r.data)
            sum += static_cast<unsigned char>(c);  // touched, so that a sanitizer sees what is not there
        for (const char c : *r.key)
            sum += static_cast<unsigned char>(c);
    }
    require(sum <= 255 * (bytes.size() + 1) * (seen + 1), "the batch holds no more than came");
}

}  // namespace

void kinesis_messages(std::string_view input) {
    const std::string bytes(input);
    for (const auto format : {wire::cbor, wire::json}) {
        records(bytes, format);
        goes_around<list_shards_reply>(bytes, format);
        goes_around<describe_stream_summary_reply>(bytes, format);
        goes_around<get_shard_iterator_reply>(bytes, format);
        goes_around<put_records_reply>(bytes, format);
        goes_around<put_failures_reply>(bytes, format);
        goes_around<get_records>(bytes, format);
        goes_around<put_records>(bytes, format);
    }
}

void kinesis_address(std::string_view text) {
    for (const auto& url :
         {std::string(text), "kinesis://" + std::string(text), "kinesis://r/s?" + std::string(text)}) {
        const auto read = parse_kinesis_url(url);
        if (!read) {
            require(!read.error().detail.empty(), "a refusal says why");
            continue;
        }
        auto again = "kinesis://" + read->region;
        if (!read->stream.empty()) again += "/" + read->stream;
        require(url.starts_with(again), "region and stream stand in the address");
        require(url.ends_with(read->endpoint), "the endpoint is its end");
        require(
            read->by_arn() || read->stream.empty() || check_kinesis_stream_name(read->stream).has_value(),
            "a name is usable"
        );
    }
    constexpr std::string_view password = "p4ssw0rd-0f-th3-t3st";
    const auto secret = parse_kinesis_url(
        "kinesis://r/s?" + std::string(text) + "&endpoint=http://u:" + std::string(password) + "@h"
    );
    require(secret || secret.error().detail.find(password) == std::string::npos, "no message shows a secret");
}

}  // namespace millrace::fuzz
