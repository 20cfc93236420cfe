#include "json/document.hpp"

#include "json/utf8.hpp"

#include <algorithm>

#include <boost/json/basic_parser_impl.hpp>
#include <fmt/format.h>

namespace millrace::schema {

namespace json = boost::json;

namespace {

// Beyond this a document gives its memory back after one large value.
constexpr std::size_t tokens_kept = 64 * 1024;
constexpr std::size_t bytes_kept = 1024 * 1024;

constexpr std::uint32_t narrow(std::size_t n) {
    return static_cast<std::uint32_t>(n);
}

}  // namespace

struct json_document::parser {
    struct handler {
        static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
        static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
        static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();
        static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();

        std::string_view json;
        std::vector<json_token>* tokens{nullptr};
        std::string* unescaped{nullptr};
        std::vector<std::uint32_t> open;
        std::size_t begun{0};  ///< Where the parts of the present string begin in `unescaped`.
        bool in_parts{false};

        void scalar(json_kind kind, bool truth = false) {
            auto& token = tokens->emplace_back();
            token.kind = kind;
            token.truth = truth;
            token.end = narrow(tokens->size());
        }

        void number(std::string_view text, bool integral) {
            scalar(json_kind::number);
            auto& token = tokens->back();
            token.text = narrow(static_cast<std::size_t>(text.data() - json.data()));
            token.size = narrow(text.size());
            token.integral = integral;
        }

        bool part(std::string_view text) {
            if (!in_parts) begun = unescaped->size();
            in_parts = true;
            unescaped->append(text);
            return true;
        }

        bool string(std::string_view text) {
            scalar(json_kind::string);
            auto& token = tokens->back();
            // Whatever has no escape comes as a piece of the input itself.
            const bool inside =
                text.data() >= json.data() && text.data() + text.size() <= json.data() + json.size();
            if (!in_parts && inside) {
                token.text = narrow(static_cast<std::size_t>(text.data() - json.data()));
                token.size = narrow(text.size());
                return true;
            }
            part(text);
            in_parts = false;
            token.unescaped = true;
            token.text = narrow(begun);
            token.size = narrow(unescaped->size() - begun);
            return true;
        }

        bool begin(json_kind kind) {
            open.push_back(narrow(tokens->size()));
            scalar(kind);
            return true;
        }

        bool end(std::size_t n) {
            auto& token = (*tokens)[open.back()];
            token.size = narrow(n);
            token.end = narrow(tokens->size());
            open.pop_back();
            return true;
        }

        static bool on_document_begin(json::error_code&) { return true; }
        static bool on_document_end(json::error_code&) { return true; }
        bool on_array_begin(json::error_code&) { return begin(json_kind::array); }
        bool on_array_end(std::size_t n, json::error_code&) { return end(n); }
        bool on_object_begin(json::error_code&) { return begin(json_kind::object); }
        bool on_object_end(std::size_t n, json::error_code&) { return end(n); }
        bool on_string_part(json::string_view s, std::size_t, json::error_code&) { return part(s); }
        bool on_string(json::string_view s, std::size_t, json::error_code&) { return string(s); }
        bool on_key_part(json::string_view s, std::size_t, json::error_code&) { return part(s); }
        bool on_key(json::string_view s, std::size_t, json::error_code&) { return string(s); }
        static bool on_number_part(json::string_view, json::error_code&) { return true; }
        bool on_int64(std::int64_t, json::string_view s, json::error_code&) {
            number(s, true);
            return true;
        }
        bool on_uint64(std::uint64_t, json::string_view s, json::error_code&) {
            number(s, true);
            return true;
        }
        bool on_double(double, json::string_view s, json::error_code&) {
            // An integer beyond 64 bits comes as a double, too.
            number(s, std::string_view(s).find_first_of(".eE") == std::string_view::npos);
            return true;
        }
        bool on_bool(bool b, json::error_code&) {
            scalar(json_kind::boolean, b);
            return true;
        }
        bool on_null(json::error_code&) {
            scalar(json_kind::null);
            return true;
        }
        static bool on_comment_part(json::string_view, json::error_code&) { return true; }
        static bool on_comment(json::string_view, json::error_code&) { return true; }
    };

    explicit parser(const json::parse_options& options) : sax(options) {}

    json::basic_parser<handler> sax;
};

json_document::json_document(json_limits limits) : limits_(limits) {
    json::parse_options options;
    options.max_depth = limits.depth_max;
    parser_ = std::make_unique<parser>(options);
}

json_document::~json_document() = default;
json_document::json_document(json_document&&) noexcept = default;
json_document& json_document::operator=(json_document&&) noexcept = default;

void json_document::forget() {
    if (tokens_.capacity() > tokens_kept) tokens_ = {};
    if (unescaped_.capacity() > bytes_kept) unescaped_ = {};
    tokens_.clear();
    unescaped_.clear();
}

result<void> json_document::read(std::string_view json) {
    forget();
    const auto bytes_max =
        std::min<std::size_t>(limits_.bytes_max, std::numeric_limits<std::uint32_t>::max() / 2);
    if (json.size() > bytes_max) {
        return fail(
            errc::invalid_argument,
            fmt::format("{} bytes of JSON are more than the limit of {}", json.size(), bytes_max)
        );
    }
    json_ = json;
    auto& sax = parser_->sax;
    sax.reset();
    auto& handler = sax.handler();
    handler.json = json;
    handler.tokens = &tokens_;
    handler.unescaped = &unescaped_;
    handler.open.clear();
    handler.in_parts = false;
    json::error_code code;
    const std::size_t used = sax.write_some(false, json.data(), json.size(), code);
    if (!code && used < json.size()) code = json::error::extra_data;
    if (!code) return {};
    tokens_.clear();
    if (code == json::error::too_deep) {
        return fail(
            errc::invalid_argument,
            fmt::format("the JSON is nested more than {} levels deep", limits_.depth_max)
        );
    }
    return fail(
        errc::invalid_argument, fmt::format("it is no valid JSON at byte {}: {}", used, code.message())
    );
}

json_document::index json_document::member(index object, std::string_view key) const noexcept {
    index found = none;
    for (index i = object + 1; i < at(object).end; i = at(i + 1).end) {
        if (text(i) == key) found = i + 1;
    }
    return found;
}

json_document::index json_document::doubled_key(index object) const {
    constexpr std::uint32_t compared_one_by_one = 16;
    const auto& whole = at(object);
    if (whole.size <= compared_one_by_one) {
        for (index i = object + 1; i < whole.end; i = at(i + 1).end) {
            for (index before = object + 1; before < i; before = at(before + 1).end) {
                if (text(before) == text(i)) return i;
            }
        }
        return none;
    }
    std::vector<index> keys;
    keys.reserve(whole.size);
    for (index i = object + 1; i < whole.end; i = at(i + 1).end)
        keys.push_back(i);
    std::sort(keys.begin(), keys.end(), [this](index a, index b) {
        const int order = text(a).compare(text(b));
        return order != 0 ? order < 0 : a < b;
    });
    const auto same = [this](index a, index b) { return text(a) == text(b); };
    const auto found = std::adjacent_find(keys.begin(), keys.end(), same);
    return found == keys.end() ? none : *std::next(found);
}

std::string json_document::path_of(index token) const {
    return path_of(token, [](std::string_view) { return true; });
}

std::string json_document::path_of(index token, const is_known_name& known) const {
    std::string path = "$";
    index place = root;
    while (place != token) {
        const bool object = at(place).kind == json_kind::object;
        std::size_t n = 0;
        index child = place + 1;
        index value = object ? child + 1 : child;
        for (; at(value).end <= token; ++n) {
            child = at(value).end;
            value = object ? child + 1 : child;
        }
        if (!object) {
            path += fmt::format("[{}]", n);
        } else if (known(text(child))) {
            path += fmt::format(".{}", shortened(text(child)));
        } else {
            path += fmt::format("{{{}}}", n + 1);
        }
        if (child == token) break;  // the key itself
        place = value;
    }
    return path;
}

std::string describe(const json_document& document, json_document::index token) {
    const auto& t = document.at(token);
    const auto many = [](std::size_t n, const char* what) {
        return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    switch (t.kind) {
        case json_kind::null:
            return "null";
        case json_kind::boolean:
            return "a boolean";
        case json_kind::number:
            return t.integral ? "an integer" : "a number with a fraction or an exponent";
        case json_kind::string:
            return "a string of " + many(code_points(document.text(token)), "character");
        case json_kind::array:
            return "an array of " + many(t.size, "element");
        case json_kind::object:
            return "an object with " + many(t.size, "member");
    }
    return "a value";
}

}  // namespace millrace::schema
