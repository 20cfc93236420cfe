#include "record/bytes_text.hpp"
#include "targets.hpp"

#include <cstdint>

namespace millrace::fuzz {

namespace {

/// Decodes character by character, the slow way round: value first, then the rules.
bool decodes_as_utf8(std::string_view bytes) {
    constexpr std::uint32_t least_of[] = {0, 0, 0x80, 0x800, 0x10000};
    for (std::size_t at = 0; at < bytes.size();) {
        const auto lead = static_cast<unsigned char>(bytes[at]);
        const std::size_t length = lead < 0x80   ? 1
                                   : lead < 0xc0 ? 0
                                   : lead < 0xe0 ? 2
                                   : lead < 0xf0 ? 3
                                   : lead < 0xf8 ? 4
                                                 : 0;
        if (length == 0 || bytes.size() - at < length) return false;
        std::uint32_t value = length == 1 ? lead : lead & (0xffU >> (length + 1));
        for (std::size_t i = 1; i < length; ++i) {
            const auto next = static_cast<unsigned char>(bytes[at + i]);
            if ((next & 0xc0U) != 0x80U) return false;
            value = value << 6U | (next & 0x3fU);
        }
        if (value < least_of[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
            return false;
        at += length;
    }
    return true;
}

}  // namespace

void bytes_text(std::string_view bytes) {
    require(is_utf8(bytes) == decodes_as_utf8(bytes), "UTF-8 is what decodes as UTF-8");
    require(from_base64(to_base64(bytes)) == bytes, "bytes are read from the base64 that is written");
    if (const auto read = from_base64(bytes)) require(to_base64(*read) == bytes, "base64 has one form");
}

}  // namespace millrace::fuzz
