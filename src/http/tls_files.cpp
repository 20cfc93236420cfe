#include "tls_files.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace millrace {

namespace {

struct context_deleter {
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
using context = std::unique_ptr<SSL_CTX, context_deleter>;

context make_context() {
    context made(SSL_CTX_new(TLS_client_method()));
    if (!made) throw std::bad_alloc();
    return made;
}

/// Whoever opens a pipe waits for what never comes.
std::optional<std::string> unreadable(const std::string& file) {
    std::error_code failed;
    if (!std::filesystem::is_regular_file(file, failed))
        return failed || !std::filesystem::exists(file, failed) ? "is not there; correct the path"
                                                                : "is no regular file; name one";
    if (!std::ifstream(file)) return "cannot be read; correct its mode";
    return std::nullopt;
}

int give_password(char* into, int room, int /*writing*/, void* password) {
    const auto& given = *static_cast<const std::string*>(password);
    const auto size = std::min(given.size(), static_cast<std::size_t>(std::max(room, 0)));
    std::memcpy(into, given.data(), size);
    return static_cast<int>(size);
}

std::optional<std::string> fault_of_ca(const std::string& file) {
    if (auto why = unreadable(file)) return why;
    if (SSL_CTX_load_verify_file(make_context().get(), file.c_str()) == 1) return std::nullopt;
    return "holds no certificate in PEM; name the file of the authority's";
}

}  // namespace

std::optional<tls_fault> fault_of(const tls_files& files) {
    using file = tls_fault::of;
    ERR_clear_error();
    const std::shared_ptr<void> errors(nullptr, [](void*) { ERR_clear_error(); });
    if (!files.ca.empty()) {
        if (auto why = fault_of_ca(files.ca)) return tls_fault{file::ca, *why};
    }
    if (files.certificate.empty()) return std::nullopt;
    const auto tls = make_context();
    if (auto why = unreadable(files.certificate)) return tls_fault{file::certificate, *why};
    if (SSL_CTX_use_certificate_chain_file(tls.get(), files.certificate.c_str()) != 1)
        return tls_fault{file::certificate, "holds no certificate in PEM; name the client's"};
    if (auto why = unreadable(files.key)) return tls_fault{file::key, *why};
    std::string password = files.key_password;
    SSL_CTX_set_default_passwd_cb(tls.get(), &give_password);
    SSL_CTX_set_default_passwd_cb_userdata(tls.get(), &password);
    ERR_clear_error();
    if (SSL_CTX_use_PrivateKey_file(tls.get(), files.key.c_str(), SSL_FILETYPE_PEM) == 1) return std::nullopt;
    const auto first = ERR_peek_error();
    if (ERR_GET_LIB(first) == ERR_LIB_X509)
        return tls_fault{file::key, "belongs to another certificate; name the one of the client's"};
    return tls_fault{
        file::key, "holds no private key in PEM that can be read; check the file, and client_key_password"};
}

}  // namespace millrace
