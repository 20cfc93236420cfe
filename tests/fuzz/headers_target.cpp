#include "local_headers.hpp"
#include "outbox_headers.hpp"
#include "targets.hpp"

#include <string>

namespace millrace::fuzz {

void outbox_headers(std::string_view json) {
    const auto read = headers_from_json(json);
    if (!read) {
        require(!read.error().detail.empty(), "a refusal says why");
        return;
    }
    const auto written = headers_to_json(*read);
    require(written.has_value(), "headers that were read can be written");
    require(headers_from_json(*written) == read, "headers that are written read as themselves");
}

void local_headers(std::string_view encoded) {
    const auto read = decode_headers(encoded);
    if (!read) {
        require(read.error().code == errc::corrupt, "bytes that are no headers are corrupt");
        return;
    }
    std::string written;
    encode_headers(*read, written);
    require(written == encoded, "only what is written is read");
    require(encoded_size(*read) == encoded.size(), "the size is known before writing");
}

}  // namespace millrace::fuzz
