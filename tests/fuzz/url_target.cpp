#include "local_url.hpp"
#include "targets.hpp"

#include <millrace/url.hpp>

#include <string>

namespace millrace::fuzz {

void url(std::string_view text) {
    for (const auto role :
         {url_role::outbox, url_role::sink, url_role::stream, url_role::state, url_role::dead_letters}) {
        const auto read = parse_url(text, role);
        if (!read) {
            require(!read.error().detail.empty(), "a refusal says why");
            continue;
        }
        require(read->role == role && read->given == text, "a URL remembers how it was given");
        const auto stream = read->stream.empty() ? std::string() : "/" + read->stream;
        require(read->scheme + ":" + read->path + stream == text, "the parts of a URL make it up");
    }
    if (const auto stream = parse_local_stream(text)) {
        require(
            "local:" + stream->file + "/" + stream->stream == text, "file and stream make up the address"
        );
        require(check_stream_name(stream->stream).has_value(), "the stream's name is usable");
    }
    if (const auto file = parse_local_file(text))
        require("local:" + *file == text, "the file is the address");
}

}  // namespace millrace::fuzz
