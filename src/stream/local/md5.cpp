#include "md5.hpp"

#include "assert.hpp"

#include <array>

#include <openssl/evp.h>

namespace millrace {

struct md5_hasher::context {
    context() : method(EVP_MD_fetch(nullptr, "MD5", nullptr)), state(EVP_MD_CTX_new()) {
        MILLRACE_ASSERT(method != nullptr && state != nullptr);
    }
    context(const context&) = delete;
    context& operator=(const context&) = delete;
    ~context() {
        EVP_MD_CTX_free(state);
        EVP_MD_free(method);
    }

    EVP_MD* method;  // fetched once: an implicit fetch costs more than the hash
    EVP_MD_CTX* state;
};

md5_hasher::md5_hasher() : context_(std::make_unique<context>()) {}
md5_hasher::~md5_hasher() = default;
md5_hasher::md5_hasher(md5_hasher&&) noexcept = default;
md5_hasher& md5_hasher::operator=(md5_hasher&&) noexcept = default;

hash_key md5_hasher::hash(std::string_view key) {
    std::array<unsigned char, hash_key::bytes> digest{};
    const bool done = EVP_DigestInit_ex2(context_->state, context_->method, nullptr) == 1 &&
                      EVP_DigestUpdate(context_->state, key.data(), key.size()) == 1 &&
                      EVP_DigestFinal_ex(context_->state, digest.data(), nullptr) == 1;
    MILLRACE_ASSERT(done);
    return hash_key::from_digest(digest);
}

}  // namespace millrace
