#include "credentials/command_words.hpp"
#include "credentials/key_document.hpp"
#include "credentials/origins.hpp"
#include "credentials/profiles.hpp"
#include "credentials/role_values.hpp"
#include "credentials/sts_reply.hpp"
#include "credentials/text.hpp"
#include "targets.hpp"

#include <string>

namespace millrace::fuzz {

namespace {

constexpr std::string_view secret = "p4ssw0rd-0f-th3-t3st";

/// Keys that were read can be sent, and a refusal does not show what was read.
void usable_or_silent(const result<aws::aws_keys>& read) {
    if (read) {
        require(!read->access_key.empty() && !read->secret_key.empty(), "keys are two");
        require(aws::check_keys(*read, "keys").has_value(), "keys can stand in a header");
        return;
    }
    require(!read.error().detail.empty(), "a refusal says why");
    require(read.error().detail.find(secret) == std::string::npos, "no message shows a secret");
}

}  // namespace

void aws_profiles(std::string_view text) {
    const std::string content(text);
    for (const std::string& file :
         {content, "[default]\naws_secret_access_key=" + std::string(secret) + content}) {
        const auto read = aws::merge_profiles({"credentials", file}, {"config", file});
        if (!read) {
            require(read.error().detail.find(secret) == std::string::npos, "no message shows a secret");
            continue;
        }
        for (const auto& [name, values] : read->by_name) {
            require(!name.empty(), "a profile has a name");
            for (const auto& [key, value] : values) {
                require(key == aws::in_lower_case(key), "names are in lower case");
                require(
                    value.find('\r') == std::string::npos || value.find('\r') + 1 < value.size(),
                    "line ends go"
                );
            }
            (void)aws::read_role(values, "a profile");
        }
    }
    const auto words = aws::command_words(text);
    if (words) require(!words->empty() && !words->front().empty(), "a command has a program");
}

void aws_key_document(std::string_view json) {
    for (const auto dialect : {aws::key_dialect::program, aws::key_dialect::agent}) {
        usable_or_silent(aws::read_keys(json, dialect, "it"));
        std::string with_secret = R"({"SecretAccessKey":")" + std::string(secret) + "\",";
        usable_or_silent(aws::read_keys(with_secret + std::string(json), dialect, "it"));
    }
}

void aws_sts_reply(std::string_view xml) {
    usable_or_silent(aws::read_sts_keys(xml, "it"));
    usable_or_silent(aws::read_sts_keys(
        "<R><Credentials><SecretAccessKey>" + std::string(secret) + "</SecretAccessKey>" + std::string(xml),
        "it"
    ));
    const auto said = aws::read_sts_failure(xml);
    require(said.code.size() <= 67 && said.message.size() <= 303, "what STS says is cut");
}

void aws_key_place(std::string_view url) {
    // What is no address of this machine by its first letters can only be asked by HTTPS.
    if (!aws::may_give_keys(url)) return;
    require(aws::is_graphic(url), "an address has no blanks");
    const auto rest = aws::in_lower_case(url);
    bool known = rest.starts_with("https://");
    for (const std::string_view host :
         {"localhost", "127.", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"})
        known = known || rest.starts_with("http://" + std::string(host));
    require(known, "keys are not asked of strangers");
    const auto authority = url.substr(0, url.find_first_of("/?#", url.find("://") + 3));
    require(authority.find('@') == std::string_view::npos, "no user hides the host");
}

}  // namespace millrace::fuzz
