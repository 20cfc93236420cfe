#include "support/kinesis_fake/wire.hpp"

#include "record/bytes_text.hpp"

#include <bit>
#include <cmath>
#include <cstddef>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace millrace::kinesis_fake {

namespace {

namespace json = boost::json;

constexpr unsigned depth_max = 16;

template <class... F>
struct overload : F... {
    using F::operator()...;
};
template <class... F>
overload(F...) -> overload<F...>;

json::value to_json(const value& what) {
    return std::visit(
        overload{
            [](std::nullptr_t) { return json::value(nullptr); },
            [](const std::string& text) { return json::value(text); },
            [](const blob& b) { return json::value(to_base64(b.bytes)); },
            [](const moment& m) { return json::value(static_cast<double>(m.milliseconds) / 1000.0); },
            [](const value_list& all) {
                json::array made;
                for (const auto& one : all)
                    made.push_back(to_json(one));
                return json::value(std::move(made));
            },
            [](const value_map& all) {
                json::object made;
                for (const auto& [name, one] : all)
                    made.emplace(name, to_json(one));
                return json::value(std::move(made));
            },
            [](const auto& plain) { return json::value(plain); }},
        what.is
    );
}

value from_json(const json::value& what) {
    switch (what.kind()) {
        case json::kind::null:
            return {nullptr};
        case json::kind::bool_:
            return {what.get_bool()};
        case json::kind::int64:
            return {what.get_int64()};
        case json::kind::uint64:
            return {static_cast<double>(what.get_uint64())};
        case json::kind::double_:
            return {what.get_double()};
        case json::kind::string:
            return {std::string(what.get_string())};
        case json::kind::array: {
            value_list all;
            for (const auto& one : what.get_array())
                all.push_back(from_json(one));
            return {std::move(all)};
        }
        case json::kind::object: {
            value_map all;
            for (const auto& [name, one] : what.get_object())
                all.emplace_back(std::string(name), from_json(one));
            return {std::move(all)};
        }
    }
    return {nullptr};
}

enum major : std::uint8_t {
    whole = 0,
    negative = 1,
    bytes = 2,
    text = 3,
    list = 4,
    map = 5,
    tag = 6,
    simple = 7
};
constexpr std::uint8_t open_length = 31;
constexpr char end_of_open = '\xff';
constexpr std::uint64_t epoch_tag = 1;

class cbor_writer {
public:
    explicit cbor_writer(bool open_ended) : open_ended_(open_ended) {}

    void put(const value& what) {
        std::visit(
            overload{
                [&](std::nullptr_t) { out_ += '\xf6'; },
                [&](bool yes) { out_ += yes ? '\xf5' : '\xf4'; },
                [&](std::int64_t number) { put_number(number); },
                [&](double number) {
                    out_ += '\xfb';
                    put_bytes(std::bit_cast<std::uint64_t>(number), 8);
                },
                [&](const std::string& s) { put_text(s); },
                [&](const blob& b) {
                    head(major::bytes, b.bytes.size());
                    out_ += b.bytes;
                },
                [&](const moment& m) {
                    head(major::tag, epoch_tag);
                    put_number(m.milliseconds);
                },
                [&](const value_list& all) {
                    begin(major::list, all.size());
                    for (const auto& one : all)
                        put(one);
                    end();
                },
                [&](const value_map& all) {
                    begin(major::map, all.size());
                    for (const auto& [name, one] : all) {
                        put_text(name);
                        put(one);
                    }
                    end();
                }},
            what.is
        );
    }
    std::string take() { return std::move(out_); }

private:
    void head(major kind, std::uint64_t size) {
        const auto top = static_cast<unsigned>(kind) << 5U;
        const auto first = [&](unsigned low) { out_ += static_cast<char>(top | low); };
        if (size < 24) return first(static_cast<unsigned>(size));
        const unsigned power = size <= 0xff ? 0 : size <= 0xffff ? 1 : size <= 0xffff'ffff ? 2 : 3;
        first(24 + power);
        put_bytes(size, 1U << power);
    }
    void put_bytes(std::uint64_t number, unsigned count) {
        for (unsigned i = count; i-- > 0;)
            out_ += static_cast<char>((number >> (8 * i)) & 0xffU);
    }
    void put_number(std::int64_t number) {
        if (number >= 0) return head(major::whole, static_cast<std::uint64_t>(number));
        head(major::negative, static_cast<std::uint64_t>(-(number + 1)));
    }
    void put_text(std::string_view s) {
        head(major::text, s.size());
        out_ += s;
    }
    void begin(major kind, std::size_t size) {
        if (!open_ended_) return head(kind, size);
        out_ += static_cast<char>((static_cast<unsigned>(kind) << 5U) | open_length);
    }
    void end() {
        if (open_ended_) out_ += end_of_open;
    }

    bool open_ended_;
    std::string out_;
};

class cbor_reader {
public:
    explicit cbor_reader(std::string_view in) : in_(in) {}

    std::optional<value> all() {
        auto made = one(0);
        if (!made || !in_.empty()) return std::nullopt;
        return made;
    }

private:
    struct item {
        major kind{major::whole};
        std::uint8_t low{0};
        std::uint64_t size{0};
        [[nodiscard]] bool open() const { return low == open_length; }
    };

    std::optional<std::uint64_t> number(unsigned count) {
        if (in_.size() < count) return std::nullopt;
        std::uint64_t made = 0;
        for (unsigned i = 0; i < count; ++i)
            made = (made << 8U) | static_cast<std::uint8_t>(in_[i]);
        in_.remove_prefix(count);
        return made;
    }

    std::optional<item> head() {
        const auto first = number(1);
        if (!first) return std::nullopt;
        item made{
            static_cast<major>(*first >> 5U), static_cast<std::uint8_t>(*first & 0x1fU), *first & 0x1fU};
        if (made.low < 24 || made.open()) return made;
        if (made.low > 27) return std::nullopt;
        const auto size = number(1U << (made.low - 24U));
        if (!size) return std::nullopt;
        made.size = *size;
        return made;
    }

    bool at_end(const item& of, std::uint64_t seen) {
        if (!of.open()) return seen == of.size;
        if (in_.empty() || in_.front() != end_of_open) return false;
        in_.remove_prefix(1);
        return true;
    }

    std::optional<std::string> string(const item& of) {
        if (of.open() || of.size > in_.size()) return std::nullopt;
        std::string made{in_.substr(0, of.size)};
        in_.remove_prefix(of.size);
        return made;
    }

    std::optional<value> one(unsigned depth) {
        const auto first = depth < depth_max ? head() : std::nullopt;
        if (!first) return std::nullopt;
        switch (first->kind) {
            case major::whole:
                return value{static_cast<std::int64_t>(first->size)};
            case major::negative:
                return value{-1 - static_cast<std::int64_t>(first->size)};
            case major::simple:
                return simple_one(*first);
            case major::tag: {
                const auto inner = first->size == epoch_tag ? one(depth + 1) : std::nullopt;
                const auto* ms = inner ? std::get_if<std::int64_t>(&inner->is) : nullptr;
                if (ms == nullptr) return std::nullopt;
                return value{moment{*ms}};
            }
            case major::bytes:
            case major::text: {
                auto made = string(*first);
                if (!made) return std::nullopt;
                if (first->kind == major::bytes) return value{blob{std::move(*made)}};
                return value{std::move(*made)};
            }
            case major::list:
                return list_of(*first, depth);
            case major::map:
                return map_of(*first, depth);
        }
        return std::nullopt;
    }

    std::optional<value> simple_one(const item& of) {
        if (of.low == 20 || of.low == 21) return value{of.low == 21};
        if (of.low == 22) return value{nullptr};
        if (of.low == 27) return value{std::bit_cast<double>(of.size)};
        return std::nullopt;
    }

    std::optional<value> list_of(const item& of, unsigned depth) {
        value_list all;
        while (!at_end(of, all.size())) {
            auto next = one(depth + 1);
            if (!next) return std::nullopt;
            all.push_back(std::move(*next));
        }
        return value{std::move(all)};
    }

    std::optional<value> map_of(const item& of, unsigned depth) {
        value_map all;
        while (!at_end(of, all.size())) {
            const auto key = head();
            auto name = key && key->kind == major::text ? string(*key) : std::nullopt;
            auto next = name ? one(depth + 1) : std::nullopt;
            if (!next) return std::nullopt;
            all.emplace_back(std::move(*name), std::move(*next));
        }
        return value{std::move(all)};
    }

    std::string_view in_;
};

}  // namespace

bool value::operator==(const value& other) const {
    return is == other.is;
}

const value* find(const value& in, std::string_view name) {
    const auto* all = std::get_if<value_map>(&in.is);
    if (all == nullptr) return nullptr;
    for (const auto& [known, one] : *all) {
        if (known == name) return std::holds_alternative<std::nullptr_t>(one.is) ? nullptr : &one;
    }
    return nullptr;
}

std::optional<value> decode(wire_form form, std::string_view body) {
    if (form == wire_form::cbor) return cbor_reader(body).all();
    boost::system::error_code failed;
    json::parse_options options;
    options.max_depth = depth_max;
    const auto parsed = json::parse(json::string_view{body.data(), body.size()}, failed, {}, options);
    if (failed) return std::nullopt;
    return from_json(parsed);
}

std::string encode(wire_form form, const value& what, bool open_ended) {
    if (form == wire_form::json) return json::serialize(to_json(what));
    cbor_writer out(open_ended);
    out.put(what);
    return out.take();
}

std::optional<std::string> as_blob(const value& what) {
    if (const auto* b = std::get_if<blob>(&what.is)) return b->bytes;
    if (const auto* text = std::get_if<std::string>(&what.is)) return from_base64(*text);
    return std::nullopt;
}

std::optional<std::int64_t> as_milliseconds(const value& what) {
    if (const auto* m = std::get_if<moment>(&what.is)) return m->milliseconds;
    if (const auto* seconds = std::get_if<double>(&what.is)) return std::llround(*seconds * 1000.0);
    if (const auto* seconds = std::get_if<std::int64_t>(&what.is)) return *seconds * 1000;
    return std::nullopt;
}

}  // namespace millrace::kinesis_fake
