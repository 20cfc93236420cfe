#include "ndjson.hpp"

#include "record/bytes_text.hpp"
#include "text/nearest.hpp"
#include "units.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include <boost/json/error.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/parser.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace millrace::app {

namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 7> fields{
    "topic", "key", "key_base64", "value", "value_base64", "headers", "partition"};

tl::unexpected<error> bad(std::string detail) {
    return fail(errc::invalid_argument, std::move(detail));
}

std::string_view view(const json::string& text) {
    return {text.data(), text.size()};
}

std::string_view in_words(const json::value& value) {
    switch (value.kind()) {
        case json::kind::null:
            return "null";
        case json::kind::bool_:
            return "a truth value";
        case json::kind::int64:
        case json::kind::uint64:
        case json::kind::double_:
            return "a number";
        case json::kind::string:
            return "a string";
        case json::kind::array:
            return "a list";
        case json::kind::object:
            return "an object";
    }
    return "";
}

/// Walks over one JSON value of a text that is known to be valid.
std::size_t skip_value(std::string_view text, std::size_t i) {
    std::size_t depth = 0;
    bool quoted_part = false;
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted_part) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                quoted_part = false;
        } else if (c == '"') {
            quoted_part = true;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if (c == '}' || c == ']') {
            if (depth == 0) return i;
            --depth;
        } else if ((c == ',' || c == ':') && depth == 0) {
            return i;
        }
    }
    return i;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view space = " \t\r\n";
    const std::size_t first = text.find_first_not_of(space);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(space) - first + 1);
}

/// Calls with the source texts of name and value of each member of the object that the line holds, doubled
/// ones included.
template <class Take>
void each_member(std::string_view line, Take take) {
    std::size_t i = line.find('{') + 1;
    while (true) {
        const std::size_t colon = skip_value(line, i);
        if (colon >= line.size() || line[colon] != ':') return;  // An empty object.
        const std::size_t end = skip_value(line, colon + 1);
        take(trimmed(line.substr(i, colon - i)), trimmed(line.substr(colon + 1, end - colon - 1)));
        if (end >= line.size() || line[end] == '}') return;
        i = end + 1;
    }
}

struct members {
    std::size_t count{0};
    std::string_view value;  ///< The source text of the member "value".
};

members scan(std::string_view line) {
    members out;
    each_member(line, [&](std::string_view name, std::string_view value) {
        if (name == R"("value")") out.value = value;
        ++out.count;
    });
    return out;
}

/// Whether the parser stopped behind the first half of a surrogate pair, `\ud800`, or one byte later.
bool behind_half_pair(std::string_view read) {
    for (const std::size_t back : {6U, 7U}) {
        if (read.size() < back) continue;
        const std::string_view half = read.substr(read.size() - back, 4);
        if (half.substr(0, 2) == "\\u" && (half[2] == 'd' || half[2] == 'D') &&
            std::string_view("89abAB").find(half[3]) != std::string_view::npos)
            return true;
    }
    return false;
}

/// What the parser's message leaves to guess.
std::string in_words(const json::error_code& ec, std::string_view line, std::size_t used) {
    if (!is_utf8(line)) return "a byte that is not UTF-8; give bytes as key_base64 or value_base64";
    if (ec == json::error::illegal_leading_surrogate || ec == json::error::illegal_trailing_surrogate ||
        ec == json::error::expected_utf16_escape ||
        (ec == json::error::syntax && behind_half_pair(line.substr(0, used))))
        return "half of a surrogate pair, which is no character; give bytes as key_base64 or value_base64";
    if (ec == json::error::too_deep)
        return "too deep: lists and objects nest at most 32; give the value as a string or as value_base64";
    return ec.message();
}

result<json::value> parse_line(std::string_view line, json::storage_ptr memory) {
    json::parser parser(std::move(memory));
    json::error_code ec;
    const std::size_t used = parser.write_some(line.data(), line.size(), ec);
    if (ec == json::error::incomplete) return bad("not valid JSON: the line ends too early");
    if (!ec && trimmed(line.substr(used)).empty()) return parser.release();
    if (!ec) return bad(fmt::format("not valid JSON at column {}: more text follows the object", used + 1));
    return bad(fmt::format("not valid JSON at column {}: {}", used + 1, in_words(ec, line, used)));
}

result<std::string> decoded(const json::value& value, std::string_view name) {
    if (!value.is_string()) return bad(fmt::format("\"{}\" must be a string, not {}", name, in_words(value)));
    if (auto bytes = from_base64(view(value.get_string()))) return std::move(*bytes);
    return bad(fmt::format("\"{}\" is not valid base64", name));
}

result<header> take_header(const json::value& item, std::size_t index) {
    const auto where = fmt::format("header {}", index + 1);
    if (!item.is_array() || item.get_array().size() != 2) {
        return bad(fmt::format("{} must be a list of a name and a value", where));
    }
    const json::array& pair = item.get_array();
    if (!pair[0].is_string()) return bad(fmt::format("the name of {} must be a string", where));
    header out{std::string{view(pair[0].get_string())}, std::nullopt};
    if (pair[1].is_null()) return out;
    if (pair[1].is_string()) {
        out.value = std::string{view(pair[1].get_string())};
        return out;
    }
    if (!pair[1].is_object() || pair[1].get_object().size() != 1 ||
        !pair[1].get_object().contains("base64")) {
        return bad(fmt::format("the value of {} must be a string, null or {{\"base64\":\"...\"}}", where));
    }
    auto bytes = decoded(pair[1].get_object().at("base64"), "base64");
    if (!bytes) return tl::unexpected(bytes.error());
    out.value = std::move(*bytes);
    return out;
}

result<void> take_topic(const json::object& object, std::string_view topic, event& out) {
    const json::value* given = object.if_contains("topic");
    if (given == nullptr && !topic.empty()) {
        out.topic = topic;
        return {};
    }
    if (given == nullptr) return bad("\"topic\" is missing");
    if (!given->is_string()) return bad(fmt::format("\"topic\" must be a string, not {}", in_words(*given)));
    const std::string_view name = view(given->get_string());
    if (const auto why = misfit_of_topic(name); !why.empty()) return bad(fmt::format("\"topic\" {}", why));
    if (!topic.empty() && name != topic) {
        return bad(fmt::format("the topic {} is not the stream {}", in_quotes(name), in_quotes(topic)));
    }
    out.topic = name;
    return {};
}

result<void> take_key(const json::object& object, event& out) {
    const json::value* text = object.if_contains("key");
    const json::value* coded = object.if_contains("key_base64");
    if (text != nullptr && coded != nullptr) return bad("\"key\" and \"key_base64\" exclude each other");
    if (coded != nullptr) {
        auto bytes = decoded(*coded, "key_base64");
        if (!bytes) return tl::unexpected(bytes.error());
        out.key = std::move(*bytes);
    } else if (text != nullptr && !text->is_null()) {
        if (!text->is_string()) {
            return bad(fmt::format("\"key\" must be a string or null, not {}", in_words(*text)));
        }
        out.key = std::string{view(text->get_string())};
    }
    return {};
}

result<void> take_value(const json::object& object, std::string_view source, event& out) {
    const json::value* text = object.if_contains("value");
    const json::value* coded = object.if_contains("value_base64");
    if (text != nullptr && coded != nullptr) return bad("\"value\" and \"value_base64\" exclude each other");
    if (text == nullptr && coded == nullptr) return bad("\"value\" is missing; write null for a tombstone");
    if (coded != nullptr) {
        auto bytes = decoded(*coded, "value_base64");
        if (!bytes) return tl::unexpected(bytes.error());
        out.value = std::move(*bytes);
    } else if (text->is_string()) {
        out.value = std::string{view(text->get_string())};
    } else if (!text->is_null()) {
        if (source.empty()) return bad("the name of the field \"value\" must not be written with escapes");
        out.value = std::string{source};
    }
    return {};
}

result<void> take_rest(const json::object& object, event& out) {
    if (const json::value* headers = object.if_contains("headers");
        headers != nullptr && !headers->is_null()) {
        if (!headers->is_array()) {
            return bad(fmt::format("\"headers\" must be a list, not {}", in_words(*headers)));
        }
        for (const json::value& item : headers->get_array()) {
            auto one = take_header(item, out.headers.size());
            if (!one) return tl::unexpected(one.error());
            out.headers.push_back(std::move(*one));
        }
    }
    const json::value* partition = object.if_contains("partition");
    if (partition == nullptr || partition->is_null()) return {};
    const std::int64_t* number = partition->if_int64();
    if (number == nullptr || *number < 0 || *number > std::numeric_limits<std::int32_t>::max()) {
        return bad("\"partition\" must be a whole number from 0 to 2147483647");
    }
    out.partition = static_cast<std::int32_t>(*number);
    return {};
}

}  // namespace

std::string misfit_of_topic(std::string_view name) {
    constexpr std::size_t topic_bytes_max = 1024;
    if (name.empty()) return "is empty";
    if (name.size() > topic_bytes_max) return fmt::format("is longer than {} bytes", topic_bytes_max);
    if (!is_utf8(name)) return "is not UTF-8";
    return {};
}

std::string_view field_text(std::string_view line, std::string_view name) {
    const auto quoted = fmt::format("\"{}\"", name);
    std::string_view found;
    each_member(line, [&](std::string_view given, std::string_view value) {
        if (given == quoted) found = value;
    });
    return found;
}

std::string doubled_field(std::string_view line) {
    std::set<std::string> seen;
    std::string doubled;
    each_member(line, [&](std::string_view name, std::string_view) {
        json::error_code ec;
        const json::value read = json::parse(json::string_view{name.data(), name.size()}, ec);
        if (ec || !doubled.empty()) return;
        std::string plain{view(read.get_string())};
        if (!seen.insert(plain).second) doubled = std::move(plain);
    });
    return doubled;
}

result<event> parse_event(std::string_view line, std::string_view topic) {
    std::array<unsigned char, 4096> first_block{};
    json::monotonic_resource memory(first_block.data(), first_block.size());
    const auto parsed = parse_line(line, &memory);
    if (!parsed) return tl::unexpected(parsed.error());
    if (!parsed->is_object()) return bad(fmt::format("expected an object, found {}", in_words(*parsed)));
    const json::object& object = parsed->get_object();
    for (const auto& member : object) {
        const std::string_view name{member.key().data(), member.key().size()};
        if (std::find(fields.begin(), fields.end(), name) == fields.end()) {
            return bad(fmt::format("unknown field {}{}", in_quotes(name), did_you_mean(name, fields)));
        }
    }
    const members found = scan(line);
    if (found.count != object.size()) {
        return bad(fmt::format("the field {} is there twice", in_quotes(doubled_field(line))));
    }
    event out;
    for (const auto& step :
         {take_topic(object, topic, out),
          take_key(object, out),
          take_value(object, found.value, out),
          take_rest(object, out)}) {
        if (!step) return tl::unexpected(step.error());
    }
    return out;
}

line_reader::outcome line_reader::fill(std::chrono::milliseconds patience) {
    constexpr std::size_t step = 64 * 1024;
    if (begin_ > 0) {
        buffer_.erase(0, begin_);
        scanned_ -= begin_;
        begin_ = 0;
    }
    std::array<struct pollfd, 2> ready{{{fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    const int n = ::poll(ready.data(), ready.size(), static_cast<int>(patience.count()));
    if (n == 0) return outcome::idle;
    if (n < 0) return errno == EINTR ? outcome::idle : outcome::failed;
    if (ready[1].revents != 0) return outcome::stopped;
    const std::size_t old = buffer_.size();
    buffer_.resize(old + step);
    const ssize_t got = ::read(fd_, buffer_.data() + old, step);
    const int why = errno;
    buffer_.resize(old + (got > 0 ? static_cast<std::size_t>(got) : 0));
    errno = why;
    if (got < 0) return why == EINTR || why == EAGAIN ? outcome::idle : outcome::failed;
    ended_ = got == 0;
    return outcome::line;
}

line_reader::outcome line_reader::next(std::string_view& line, std::chrono::milliseconds patience) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    while (true) {
        const std::size_t end = buffer_.find('\n', scanned_);
        const bool complete = end != std::string::npos;
        scanned_ = complete ? end : buffer_.size();
        if (scanned_ - begin_ > line_bytes_max_) {
            ++number_;
            return outcome::too_long;
        }
        if (complete || ended_) {
            if (!complete && begin_ == buffer_.size()) return outcome::end;
            line = std::string_view{buffer_}.substr(begin_, scanned_ - begin_);
            if (number_ == 0 && line.substr(0, mark.size()) == mark) line.remove_prefix(mark.size());
            begin_ = complete ? scanned_ + 1 : scanned_;
            scanned_ = begin_;
            ++number_;
            return outcome::line;
        }
        const outcome filled = fill(patience);
        if (filled != outcome::line) return filled;
    }
}

}  // namespace millrace::app
