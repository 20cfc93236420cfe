#include "client/endpoint.hpp"
#include "client/error_body.hpp"
#include "client/judge.hpp"
#include "signing/sign.hpp"
#include "targets.hpp"

#include <algorithm>
#include <string>

namespace millrace::fuzz {

namespace {

void one_short_line(std::string_view detail) {
    require(!detail.empty() && detail.size() < 1'000, "a failure says something, at a bounded length");
    require(detail.find_first_of("\r\n") == std::string_view::npos, "a failure is told on one line");
}

}  // namespace

/// Head and body of a reply, the head ended by an empty line; its first byte stands for the status.
void aws_reply(std::string_view text) {
    const auto status = text.empty() ? 200 : 100 + 2 * static_cast<int>(static_cast<unsigned char>(text[0]));
    const auto head_end = std::min(text.find("\n\n"), text.size());
    const auto head =
        text.substr(std::min<std::size_t>(1, head_end), head_end - std::min<std::size_t>(1, head_end));
    const auto body = text.substr(std::min(head_end + 2, text.size()));
    const http_reply reply{status, std::string(head), std::string(body)};

    const auto judged = aws::judge(reply, {.operation = "S.Op", .host = "h", .received = wall_time{}});
    if (judged) {
        require(status >= 200 && status < 300, "only a good status is a reply");
        require(judged->body == body, "a good reply's body is whole");
        return;
    }
    const auto& failure = judged.error().failure;
    one_short_line(failure.why.detail);
    require(failure.why.code != errc::internal, "no reply is a broken invariant");
    require(failure.status == status && failure.body == body, "a failure keeps what came");
    require(failure.type.size() <= 100, "a type is a name");
    require(
        status < 500 || judged.error().what.effect_possible ||
            judged.error().what.kind != aws::failure_class::transient || !failure.type.empty(),
        "what a broken service did is unknown"
    );
    for (const auto* const content_type :
         {"application/x-amz-json-1.1", "application/x-amz-cbor-1.1", "text/xml"}) {
        const auto said = aws::read_error(content_type, "", body);
        require(said.type.size() <= 100 && said.message.size() <= body.size(), "nothing is made up");
    }
}

/// An endpoint's address, and a path with a query to be signed.
void aws_address(std::string_view text) {
    if (const auto parsed = aws::parse_endpoint(text)) {
        require(aws::parse_endpoint(parsed->url) == parsed, "an endpoint's URL is itself an endpoint");
        require(
            parsed->url.ends_with(parsed->path) && !parsed->host.empty(), "an endpoint has host and path"
        );
    } else {
        one_short_line(parsed.error().detail);
    }
    const auto mark = std::min(text.find('?'), text.size());
    const auto path = text.substr(0, mark);
    const auto query = text.substr(std::min(mark + 1, text.size()));
    const auto canonical = aws::canonical_request({"GET", path, query, {}, {}});
    require(std::count(canonical.begin(), canonical.end(), '\n') == 5, "nothing breaks a canonical line");
    require(canonical.starts_with("GET\n/"), "a canonical path is absolute");
    require(
        std::none_of(
            canonical.begin(), canonical.end(), [](char c) { return c != '\n' && (c <= ' ' || c > '~'); }
        ),
        "a canonical request is plain"
    );
}

}  // namespace millrace::fuzz
