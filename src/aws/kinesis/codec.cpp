#include "kinesis/codec.hpp"

#include "kinesis/cbor.hpp"
#include "kinesis/json.hpp"
#include "kinesis/write_messages.hpp"

#include <algorithm>
#include <type_traits>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <fmt/format.h>

namespace millrace::aws::kinesis {

namespace {

/// Longer than any small string, whose bytes would move with it.
constexpr std::size_t kept_bytes_min = 64;

struct any_field {
    void operator()(std::string_view, auto&) const {}
};
template <class T>
concept message = requires(T& m) {
    fields(m, any_field{});
};

// Writing: `present` says whether a member goes on the wire, `write` puts it there.

template <class T>
bool present(const T&) {
    return true;
}
bool present(const std::string& value) {
    return !value.empty();
}
bool present(std::string_view value) {
    return !value.empty();
}
template <class T>
bool present(const std::optional<T>& value) {
    return value.has_value();
}

template <class Out>
void write(Out& out, std::string_view value) {
    out.text(value);
}
template <class Out>
void write(Out& out, blob value) {
    out.blob(value.bytes);
}
template <class Out>
void write(Out& out, std::int64_t value) {
    out.integer(value);
}
template <class Out>
void write(Out& out, wall_time value) {
    out.time(value);
}
template <class Out, class T>
void write(Out& out, const std::optional<T>& value) {
    write(out, *value);
}
template <class Out, message Message>
void write(Out& out, const Message& message);

template <class Out, class T>
void write(Out& out, const std::vector<T>& values) {
    out.begin_list();
    for (const auto& value : values)
        write(out, value);
    out.end_list();
}
template <class Out, message Message>
void write(Out& out, const Message& message) {
    out.begin_map();
    // `fields` serves reading, too, and so takes what can be changed.
    fields(const_cast<Message&>(message), [&out](std::string_view name, const auto& member) {
        if (!present(member)) return;
        out.key(name);
        write(out, member);
    });
    out.end_map();
}

// Reading: false when the input is something else.

// No reply has more of anything; and an empty element of a damaged one, a byte, would take hundreds here.
constexpr std::size_t elements_max = 10'000;

template <class In>
bool read(In& in, std::string& out) {
    return in.text(out);
}
template <class In>
bool read(In& in, std::string_view& out) {
    return in.text(out);
}
template <class In>
bool read(In& in, blob& out) {
    return in.blob(out.bytes);
}
template <class In>
bool read(In& in, std::int64_t& out) {
    return in.integer(out);
}
template <class In>
bool read(In& in, wall_time& out) {
    return in.time(out);
}
template <class In, class T>
bool read(In& in, std::optional<T>& out) {
    return read(in, out.emplace());
}
template <class In, message Message>
bool read(In& in, Message& out);

template <class In, class T>
bool read(In& in, std::vector<T>& out) {
    out.clear();
    return in.list([&] { return out.size() < elements_max && read(in, out.emplace_back()); });
}
template <class In>
bool read(In& in, each_record& out) {
    std::size_t count = 0;
    return in.list([&] {
        stored_record one{};
        return ++count <= elements_max && read(in, one) && out.take(one);
    });
}
template <class In, message Message>
bool read(In& in, Message& out) {
    return in.map([&](std::string_view name) {
        bool known = false;
        bool fits = true;
        fields(out, [&](std::string_view candidate, auto& member) {
            if (known || candidate != name) return;
            known = true;
            fits = in.null() || read(in, member);
        });
        return known ? fits : in.skip();
    });
}

tl::unexpected<error> nonsense(std::string_view format, std::size_t bytes, std::string_view where) {
    return fail(
        errc::unavailable,
        fmt::format("a message of {} bytes is not what the API says in {}{}", bytes, format, where),
        retry_advice::after_delay
    );
}

template <class Message>
result<void> read_cbor(Message& out, std::string& bytes) {
    cbor_reader in(bytes);
    if (bytes.empty() && std::is_same_v<Message, empty_reply>) return {};
    if (read(in, out) && in.at_end()) return {};
    return nonsense("CBOR", bytes.size(), fmt::format(", at byte {}", in.position()));
}

template <class Message>
result<void> read_json(Message& out, std::string& bytes) {
    if (bytes.empty() && std::is_same_v<Message, empty_reply>) return {};
    boost::json::monotonic_resource memory;
    boost::json::parse_options bounds;
    bounds.max_depth = json_reader::depth_max;
    boost::json::error_code wrong;
    const auto document = boost::json::parse(bytes, wrong, &memory, bounds);
    if (wrong) return nonsense("JSON", bytes.size(), ": " + wrong.message());
    std::string kept;
    kept.reserve(std::max(bytes.size(), kept_bytes_min));
    json_reader in(document, kept);
    if (!read(in, out)) return nonsense("JSON", bytes.size(), "");
    bytes = std::move(kept);
    return {};
}

}  // namespace

std::optional<wire> wire_of(std::string_view content_type) noexcept {
    for (const auto format : {wire::cbor, wire::json}) {
        const auto name = kinesis::content_type(format);
        if (content_type.starts_with(name) &&
            (content_type.size() == name.size() || content_type[name.size()] == ';'))
            return format;
    }
    if (content_type.starts_with("application/json")) return wire::json;
    return std::nullopt;
}

template <class Message>
std::string encode(const Message& message, wire format) {
    if (format == wire::cbor) {
        cbor_writer out;
        write(out, message);
        return out.take();
    }
    json_writer out;
    write(out, message);
    return out.take();
}

template <class Message>
result<void> decode_into(Message& out, std::string& bytes, wire format) {
    return format == wire::cbor ? read_cbor(out, bytes) : read_json(out, bytes);
}

result<get_records_reply> decode_records(
    std::string bytes, wire format, record_batch& batch, std::function<bool(const record&)> take
) {
    std::optional<error> bad_number;
    get_records_reply reply;
    reply.records.take = [&](const stored_record& one) {
        auto number = sequence_number::parse(one.sequence);
        if (!number || one.data.bytes.data() == nullptr || one.key.data() == nullptr) return false;
        record r{};
        r.position.sequence = *number;
        r.key = one.key;
        r.data = one.data.bytes;
        r.arrival = one.arrival.value_or(wall_time{});
        return take(r);
    };
    if (bytes.size() < kept_bytes_min) bytes.reserve(kept_bytes_min);
    auto read = decode_into(reply, bytes, format);
    (void)batch.adopt(std::move(bytes));
    reply.records.take = nullptr;
    if (!read) return tl::unexpected(std::move(read.error()));
    return reply;
}

// Requests are read, and replies written, by the fakes of the tests.
// NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in them
#define MILLRACE_MESSAGE(Name)                            \
    template std::string encode<Name>(const Name&, wire); \
    template result<void> decode_into<Name>(Name&, std::string&, wire)
// NOLINTEND(bugprone-macro-parentheses)

MILLRACE_MESSAGE(list_shards);
MILLRACE_MESSAGE(list_shards_reply);
MILLRACE_MESSAGE(describe_stream_summary);
MILLRACE_MESSAGE(describe_stream_summary_reply);
MILLRACE_MESSAGE(get_shard_iterator);
MILLRACE_MESSAGE(get_shard_iterator_reply);
MILLRACE_MESSAGE(get_records);
MILLRACE_MESSAGE(get_records_reply_with<std::vector<stored_record>>);
MILLRACE_MESSAGE(put_records);
MILLRACE_MESSAGE(put_records_reply);
MILLRACE_MESSAGE(put_failures_reply);
MILLRACE_MESSAGE(create_stream);
MILLRACE_MESSAGE(delete_stream);
MILLRACE_MESSAGE(split_shard);
MILLRACE_MESSAGE(merge_shards);
MILLRACE_MESSAGE(update_shard_count);
MILLRACE_MESSAGE(increase_retention);
MILLRACE_MESSAGE(empty_reply);

#undef MILLRACE_MESSAGE

}  // namespace millrace::aws::kinesis
