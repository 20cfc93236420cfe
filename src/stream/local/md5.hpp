/// MD5 of record keys, as points of the hash ring. For spreading, not for security.
#pragma once

#include "record/hash_key.hpp"

#include <memory>
#include <string_view>

namespace millrace {

/// Keeps its OpenSSL context, so that a hash costs no allocation. One thread at a time.
class md5_hasher {
public:
    md5_hasher();
    ~md5_hasher();
    md5_hasher(md5_hasher&&) noexcept;
    md5_hasher& operator=(md5_hasher&&) noexcept;

    [[nodiscard]] hash_key hash(std::string_view key);

private:
    struct context;
    std::unique_ptr<context> context_;
};

}  // namespace millrace
