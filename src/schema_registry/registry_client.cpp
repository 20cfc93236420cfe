#include "registry_client.hpp"

#include "assert.hpp"
#include "curl_http.hpp"
#include "record/bytes_text.hpp"
#include "tls_files.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace millrace::registry {

namespace {

std::string authorization_of(const registry_options& options) {
    if (!options.token.empty()) return "Bearer " + options.token;
    if (!options.user.empty()) return "Basic " + to_base64(options.user + ":" + options.password);
    return {};
}

/// What must not be shown, whatever a server says.
std::vector<std::string> secrets_of(const registry_options& options) {
    std::vector<std::string> secrets;
    for (const auto& each : {options.token, options.password})
        if (!each.empty()) secrets.push_back(each);
    if (!options.user.empty()) secrets.push_back(to_base64(options.user + ":" + options.password));
    return secrets;
}

void conceal(std::string& text, const std::vector<std::string>& secrets) {
    constexpr std::string_view mask = "***";
    for (const auto& secret : secrets) {
        for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at + mask.size()))
            text.replace(at, secret.size(), mask);
    }
}

/// What an answer says more of than a lost connection does.
bool tells_more(const registry_failure& a, const registry_failure& b) {
    return b.kind == failure_kind::unreachable && a.kind != failure_kind::unreachable;
}

void warn_of_plain_text(host& home, const registry_options& options) {
    if (authorization_of(options).empty()) return;
    for (const auto& url : options.urls) {
        if (!url.starts_with("http://")) continue;
        home.log().write(
            log_level::warning,
            "schema_registry.credentials_unprotected",
            {{"url", url}, {"advice", "use https://, or whoever is on the way can read the credentials"}}
        );
    }
}

}  // namespace

struct registry_client::impl {
    /// One question on its way through the addresses.
    struct way {
        question what;
        wire_request request;
        std::function<void(answer)> done;
        std::size_t at{0};     ///< The address that is asked now.
        std::size_t tried{0};  ///< With this one.
        std::optional<registry_failure> failure{};
    };

    impl(host& host_, std::unique_ptr<http> http_, registry_options options_)
        : home(host_),
          options(std::move(options_)),
          authorization(authorization_of(options)),
          secrets(secrets_of(options)),
          transport(std::move(http_)) {
        for (auto& url : options.urls)
            while (url.ends_with('/'))
                url.pop_back();
    }

    void send(const std::shared_ptr<way>& on);
    void came(const std::shared_ptr<way>& on, answer& outcome);

    host& home;
    registry_options options;
    std::string authorization;
    std::vector<std::string> secrets;
    std::size_t preferred{0};  // the address that answered last
    lifetime alive;
    std::unique_ptr<http> transport;  // ends first: its last outcomes find the rest still there
};

// Replies are read on the transport's thread, so that a long one costs the host nothing.
void registry_client::impl::send(const std::shared_ptr<way>& on) {
    ++on->tried;
    const auto& base = options.urls[on->at];
    http_request sent;
    sent.method = on->request.method;
    sent.url = base + on->request.path;
    sent.body = on->request.body;
    sent.timeout = options.request_timeout;
    sent.headers = {{"Accept", std::string(accepted_types)}};
    if (!sent.body.empty()) sent.headers.emplace_back("Content-Type", content_type);
    if (!authorization.empty()) sent.headers.emplace_back("Authorization", authorization);
    auto on_host = alive.guard([this, on](answer& outcome) { came(on, outcome); });
    transport->send(
        std::move(sent),
        [&host_ = home, what = on->what, base, limits = options.limits, on_host = std::move(on_host)](
            const result<http_reply>& reply
        ) {
            const auto outcome = std::make_shared<answer>();
            if (!reply) {
                *outcome = tl::unexpected(judge(what, reply.error()));
            } else if (reply->status != 200) {
                *outcome = tl::unexpected(judge(what, *reply, base));
            } else if (auto read = decode(what, reply->body, limits)) {
                *outcome = std::move(*read);
            } else {
                *outcome = tl::unexpected(unreadable(std::move(read.error()), base));
            }
            host_.post([on_host, outcome] { on_host(*outcome); });
        }
    );
}

void registry_client::impl::came(const std::shared_ptr<way>& on, answer& outcome) {
    if (!outcome && another_may_answer(outcome.error().kind)) {
        if (!on->failure || tells_more(outcome.error(), *on->failure))
            on->failure = std::move(outcome.error());
        if (on->tried < options.urls.size()) {
            on->at = (on->at + 1) % options.urls.size();
            send(on);
            return;
        }
        outcome = tl::unexpected(std::move(*on->failure));
        if (on->tried > 1)
            outcome.error().why.detail += fmt::format("; none of the {} addresses did better", on->tried);
    } else {
        preferred = on->at;
    }
    if (!outcome) conceal(outcome.error().why.detail, secrets);
    on->done(std::move(outcome));
}

registry_client::registry_client(host& home, std::unique_ptr<http> transport, registry_options options) {
    MILLRACE_ASSERT(options.validate().has_value());
    warn_of_plain_text(home, options);
    impl_ = std::make_unique<impl>(home, std::move(transport), std::move(options));
}

registry_client::~registry_client() = default;

void registry_client::ask(question what, std::function<void(answer)> done) {
    auto request = encode(what);
    if (!request) {
        registry_failure failure{failure_kind::refused, std::move(request.error()), milliseconds{0}};
        impl_->home.post(impl_->alive.guard([done = std::move(done), failure = std::move(failure)] {
            done(tl::unexpected(failure));
        }));
        return;
    }
    impl_->send(std::make_shared<impl::way>(impl::way{
        std::move(what), std::move(*request), std::move(done), impl_->preferred}));
}

namespace {

result<void> check_tls_files(const registry_options& of) {
    const auto fault = fault_of(tls_files{
        of.ca_file, of.client_certificate_file, of.client_key_file, of.client_key_password});
    if (!fault) return {};
    const auto [name, file] = [&]() -> std::pair<const char*, const std::string&> {
        switch (fault->file) {
            case tls_fault::of::ca:
                return {"ca_file", of.ca_file};
            case tls_fault::of::certificate:
                return {"client_certificate_file", of.client_certificate_file};
            default:
                return {"client_key_file", of.client_key_file};
        }
    }();
    return fail(
        errc::invalid_config, fmt::format("the schema registry's {} \"{}\" {}", name, file, fault->why)
    );
}

}  // namespace

result<std::unique_ptr<registry_client>> connect_registry(host& home, registry_options options) {
    if (auto fine = options.validate(); !fine) return tl::unexpected(std::move(fine.error()));
    if (auto fine = check_tls_files(options); !fine) return tl::unexpected(std::move(fine.error()));
    auto transport = std::make_unique<curl_http>(curl_http_options{
        .connections_max = options.connections_max,
        .reply_bytes_max = options.reply_bytes_max,
        .connect_timeout = options.connect_timeout,
        .stall_timeout = options.request_timeout,
        .ca_file = options.ca_file,
        .client_certificate_file = options.client_certificate_file,
        .client_key_file = options.client_key_file,
        .client_key_password = options.client_key_password,
        .ca_setting = "the schema registry's ca_file"});
    return std::make_unique<registry_client>(home, std::move(transport), std::move(options));
}

}  // namespace millrace::registry
