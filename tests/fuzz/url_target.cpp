#include "local_url.hpp"
#include "support/url_roles.hpp"
#include "targets.hpp"

#include <millrace/url.hpp>

#include <string>

namespace millrace::fuzz {

namespace {

/// Whatever the rest of an address is, a password in its place never shows.
void no_secret_shows(std::string_view text) {
    constexpr std::string_view password = "p4ssw0rd-0f-th3-t3st";
    const auto hides = [&](const std::string& address) {
        require(without_secrets(address).find(password) == std::string::npos, "no secret is shown");
        for (const auto role : support::url_roles) {
            const auto read = parse_url(address, role);
            const auto& shown = read ? read->given : read.error().detail;
            require(shown.find(password) == std::string::npos, "no message shows a secret");
        }
    };
    hides("host=db password=" + std::string(password) + " " + std::string(text));
    hides("relay:" + std::string(password) + "@" + std::string(text));
    for (const std::string scheme : {"postgresql", "kafka", "postgres"}) {
        hides(scheme + ":relay:" + std::string(password) + "@" + std::string(text));
        hides(scheme + ":/h?sasl.password=" + std::string(password) + "&" + std::string(text));
        hides(scheme + "://u:" + std::string(password) + "@" + std::string(text));
        hides(scheme + "://h/d?password=" + std::string(password) + "&" + std::string(text));
        hides(scheme + "://h:1?sasl.password=" + std::string(password) + "&" + std::string(text));
    }
}

}  // namespace

void url(std::string_view text) {
    no_secret_shows(text);
    for (const auto role : support::url_roles) {
        const auto read = parse_url(text, role);
        if (!read) {
            require(!read.error().detail.empty(), "a refusal says why");
            continue;
        }
        require(
            read->role == role && read->given == without_secrets(text), "a URL remembers how it was given"
        );
        if (read->path.find("://") != std::string::npos) continue;  // of a server
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
