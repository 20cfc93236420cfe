#include "record/kpl.hpp"

#include "record/md5.hpp"

#include <algorithm>
#include <cstring>

namespace millrace {

namespace {

constexpr std::string_view magic = "\xF3\x89\x9A\xC2";
constexpr std::size_t digest_bytes = std::tuple_size_v<md5_digest>;

/// A field of a protobuf message: its number and its value, by wire type.
struct proto_field {
    static constexpr unsigned varint = 0;
    static constexpr unsigned fixed64 = 1;
    static constexpr unsigned bytes = 2;
    static constexpr unsigned fixed32 = 5;

    std::uint64_t number{0};
    unsigned type{0};
    std::uint64_t value{0};
    std::string_view content;
};

/// Takes the fields of a message one after the other. Groups, which are long obsolete, are not read.
class proto_reader {
public:
    explicit proto_reader(std::string_view message) : rest_(message) {}

    [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

    /// False when the bytes are no field.
    [[nodiscard]] bool next(proto_field& out) {
        std::uint64_t tag = 0;
        if (!take_varint(tag) || tag >> 32U != 0) return false;
        out.number = tag >> 3U;
        out.type = static_cast<unsigned>(tag & 7U);
        if (out.number == 0) return false;
        std::uint64_t size = 0;
        switch (out.type) {
            case proto_field::varint:
                return take_varint(out.value);
            case proto_field::fixed64:
                return take(8, out.content);
            case proto_field::bytes:
                return take_varint(size) && take(size, out.content);
            case proto_field::fixed32:
                return take(4, out.content);
            default:
                return false;
        }
    }

private:
    [[nodiscard]] bool take_varint(std::uint64_t& out) {
        out = 0;
        for (unsigned shift = 0; shift < 70 && !rest_.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(rest_.front());
            rest_.remove_prefix(1);
            if (shift == 63 && byte > 1) return false;
            out |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
            if (byte < 0x80) return true;
        }
        return false;
    }
    [[nodiscard]] bool take(std::uint64_t size, std::string_view& out) {
        if (size > rest_.size()) return false;
        out = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
    }

    std::string_view rest_;
};

/// Whether the bytes are a Tag { required string key = 1; optional string value = 2; }.
bool is_tag(std::string_view message) {
    bool has_key = false;
    proto_field field;
    for (proto_reader in(message); !in.at_end();) {
        if (!in.next(field)) return false;
        if (field.number <= 2 && field.type != proto_field::bytes) return false;
        has_key = has_key || field.number == 1;
    }
    return has_key;
}

}  // namespace

bool kpl_opener::parse_sub_record(std::string_view message, sub_record& out) {
    bool has_key = false;
    proto_field field;
    for (proto_reader in(message); !in.at_end();) {
        if (!in.next(field)) return false;
        if (field.number > 4) continue;
        const auto type = field.number <= 2 ? proto_field::varint : proto_field::bytes;
        if (field.type != type) return false;
        if (field.number == 1) {
            out.key = field.value;
            has_key = true;
        } else if (field.number == 2) {
            out.hash = field.value;
        } else if (field.number == 3) {
            out.data = field.content;
        } else if (!is_tag(field.content)) {
            return false;
        }
    }
    return has_key && out.data;
}

bool kpl_opener::parse_message(std::string_view message) {
    proto_field field;
    for (proto_reader in(message); !in.at_end();) {
        if (!in.next(field)) return false;
        if (field.number > 3) continue;
        if (field.type != proto_field::bytes) return false;
        if (field.number == 1) {
            keys_.push_back(field.content);
        } else if (field.number == 2) {
            const auto hash = hash_key::parse(field.content);
            if (!hash) return false;
            hashes_.push_back(*hash);
        } else if (!parse_sub_record(field.content, subs_.emplace_back())) {
            return false;
        }
    }
    return true;
}

bool kpl_opener::indexes_fit() const {
    return std::ranges::all_of(subs_, [this](const sub_record& sub) {
        return sub.key < keys_.size() && (!sub.hash || *sub.hash < hashes_.size());
    });
}

bool kpl_opener::parse(std::string_view data) {
    if (!data.starts_with(magic) || data.size() <= magic.size() + digest_bytes) return false;
    const auto message = data.substr(magic.size(), data.size() - magic.size() - digest_bytes);
    const auto digest = md5(message);
    if (std::memcmp(digest.data(), data.data() + data.size() - digest_bytes, digest_bytes) != 0) return false;
    keys_.clear();
    hashes_.clear();
    subs_.clear();
    return parse_message(message) && indexes_fit();
}

void kpl_opener::add(record_batch& batch, const record& outer, const filter& wanted) {
    if (!outer.data || !parse(*outer.data)) {
        if (!wanted.after || outer.position > *wanted.after) batch.add(outer);
        return;
    }
    ++counters_.aggregates;
    counters_.sub_records += subs_.size();
    auto sub = outer;
    for (std::size_t i = 0; i < subs_.size(); ++i) {
        const auto& from = subs_[i];
        sub.position.sub_sequence = i;
        sub.key = keys_[from.key];
        sub.data = from.data;
        if (wanted.range && !wanted.range->contains(from.hash ? hashes_[*from.hash] : hash_of(*sub.key))) {
            ++counters_.foreign;
        } else if (!wanted.after || sub.position > *wanted.after) {
            batch.add(sub);
        }
    }
}

}  // namespace millrace
