#include "client/cbor_texts.hpp"

#include <cstdint>
#include <vector>

#include <cbor.h>

namespace millrace::aws {

namespace {

enum class kind : std::uint8_t { scalar, text, container, break_of_container, tag };

struct token {
    kind what{kind::scalar};
    std::string_view text;
    std::size_t items{0};  ///< Of a container.
    bool endless{false};
};

void open_endless(void* out) {
    *static_cast<token*>(out) = {kind::container, {}, 0, true};
}

cbor_callbacks make_callbacks() {
    cbor_callbacks made = cbor_empty_callbacks;
    made.string = [](void* out, cbor_data data, std::size_t size) {
        *static_cast<token*>(out) = {kind::text, {reinterpret_cast<const char*>(data), size}};
    };
    made.map_start = [](void* out, std::size_t pairs) {
        // A count that cannot be true must not overflow: half of it cannot be true either.
        const auto items = pairs > SIZE_MAX / 2 ? SIZE_MAX : 2 * pairs;
        *static_cast<token*>(out) = {kind::container, {}, items};
    };
    made.array_start = [](void* out, std::size_t items) {
        *static_cast<token*>(out) = {kind::container, {}, items};
    };
    made.indef_map_start = open_endless;
    made.indef_array_start = open_endless;
    made.byte_string_start = open_endless;
    made.string_start = open_endless;
    made.indef_break = [](void* out) { *static_cast<token*>(out) = {kind::break_of_container}; };
    made.tag = [](void* out, std::uint64_t /*number*/) { *static_cast<token*>(out) = {kind::tag}; };
    return made;
}

struct frame {
    std::size_t left;
    bool endless;
};

class reader {
public:
    explicit reader(std::string_view bytes) : rest_(bytes) {}

    void run(const std::function<void(std::string_view, std::string_view)>& found) {
        constexpr std::size_t depth_max = 16;
        token next;
        if (!take(next) || next.what != kind::container) return;
        open_.push_back({next.items, next.endless});
        while (close_ended() && open_.size() <= depth_max && take(next)) {
            if (next.what == kind::break_of_container) {
                if (!open_.back().endless) return;
                open_.pop_back();
                continue;
            }
            if (open_.size() == 1) at_top(next, found);
            if (!open_.back().endless) --open_.back().left;
            if (next.what == kind::container) open_.push_back({next.items, next.endless});
        }
    }

private:
    /// The next token that is not a tag.
    bool take(token& out) {
        static const cbor_callbacks callbacks = make_callbacks();
        do {
            out = {};
            const auto read =
                cbor_stream_decode(reinterpret_cast<cbor_data>(rest_.data()), rest_.size(), &callbacks, &out);
            if (read.status != CBOR_DECODER_FINISHED || read.read == 0) return false;
            rest_.remove_prefix(read.read);
        } while (out.what == kind::tag);
        return true;
    }

    /// False when the outermost map has ended.
    bool close_ended() {
        while (!open_.empty() && !open_.back().endless && open_.back().left == 0)
            open_.pop_back();
        return !open_.empty();
    }

    void at_top(const token& item, const std::function<void(std::string_view, std::string_view)>& found) {
        const auto text = item.what == kind::text ? item.text : std::string_view();
        if (at_key_) {
            key_ = text;
        } else if (!key_.empty() && item.what == kind::text) {
            found(key_, text);
        }
        at_key_ = !at_key_;
    }

    std::string_view rest_;
    std::vector<frame> open_;
    std::string_view key_;
    bool at_key_{true};
};

}  // namespace

void read_cbor_texts(
    std::string_view bytes, const std::function<void(std::string_view, std::string_view)>& found
) {
    reader(bytes).run(found);
}

}  // namespace millrace::aws
