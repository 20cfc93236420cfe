/// A regular expression of a JSON Schema, with bounded cost.
///
/// PCRE2 in the mode that is nearest to ECMA 262: `$` only at the very end, `\u0041` and `\x41` as in
/// JavaScript,
/// `\d` and `\w` of ASCII. A match that needs too many steps ends as `too_costly` instead of holding up the
/// relay. Immutable: share it between threads.
#pragma once

#include <millrace/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace millrace::schema {

class pattern_matcher;

class pattern {
public:
    /// `invalid_argument` with the reason and the place in the pattern.
    [[nodiscard]] static result<pattern> compile(std::string_view expression);

    /// Memory that it holds.
    [[nodiscard]] std::size_t bytes() const noexcept;

    struct code_deleter {
        void operator()(void* code) const noexcept;
    };

private:
    friend class pattern_matcher;

    explicit pattern(void* code) : code_(code) {}

    std::unique_ptr<void, code_deleter> code_;
};

/// Matches patterns and keeps the memory that it takes. Not thread-safe.
class pattern_matcher {
public:
    enum class outcome : std::uint8_t { found, absent, too_costly };

    pattern_matcher();

    /// Anywhere in `text`, which is valid UTF-8.
    [[nodiscard]] outcome search(const pattern& p, std::string_view text);

    struct data_deleter {
        void operator()(void* data) const noexcept;
    };
    struct context_deleter {
        void operator()(void* context) const noexcept;
    };

private:
    std::unique_ptr<void, data_deleter> data_;
    std::unique_ptr<void, context_deleter> context_;
};

}  // namespace millrace::schema
