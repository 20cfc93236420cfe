#include "json_schema/pattern.hpp"

#include "json/utf8.hpp"

#include <array>
#include <new>

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace millrace::schema {

namespace {

// Far more than a sane pattern needs for a value of the usual size: some ten milliseconds.
constexpr std::uint32_t match_steps_max = 1'000'000;
constexpr std::uint32_t heap_kib_max = 16 * 1024;
constexpr std::size_t expression_bytes_max = 4096;

constexpr std::uint32_t as_in_javascript = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_ALT_BSUX |
                                           PCRE2_DOLLAR_ENDONLY | PCRE2_MATCH_UNSET_BACKREF |
                                           PCRE2_ALLOW_EMPTY_CLASS | PCRE2_NEVER_BACKSLASH_C;

PCRE2_SPTR bytes_of(std::string_view text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());
}

const pcre2_code* code_of(const void* code) {
    return static_cast<const pcre2_code*>(code);
}

}  // namespace

void pattern::code_deleter::operator()(void* code) const noexcept {
    pcre2_code_free(static_cast<pcre2_code*>(code));
}

result<pattern> pattern::compile(std::string_view expression) {
    if (expression.size() > expression_bytes_max) {
        return fail(
            errc::invalid_argument,
            fmt::format(
                "a pattern of {} bytes is more than the limit of {}", expression.size(), expression_bytes_max
            )
        );
    }
    int code = 0;
    PCRE2_SIZE at = 0;
    auto* const compiled =
        pcre2_compile(bytes_of(expression), expression.size(), as_in_javascript, &code, &at, nullptr);
    if (compiled != nullptr) return pattern(compiled);
    std::array<PCRE2_UCHAR, 128> why{};
    pcre2_get_error_message(code, why.data(), why.size());
    return fail(
        errc::invalid_argument,
        fmt::format(
            "the pattern \"{}\" is no regular expression at character {}: {}",
            shortened(expression),
            at,
            reinterpret_cast<const char*>(why.data())
        )
    );
}

std::size_t pattern::bytes() const noexcept {
    std::size_t size = 0;
    pcre2_pattern_info(code_of(code_.get()), PCRE2_INFO_SIZE, &size);
    return size;
}

void pattern_matcher::data_deleter::operator()(void* data) const noexcept {
    pcre2_match_data_free(static_cast<pcre2_match_data*>(data));
}

void pattern_matcher::context_deleter::operator()(void* context) const noexcept {
    pcre2_match_context_free(static_cast<pcre2_match_context*>(context));
}

pattern_matcher::pattern_matcher()
    : data_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
    if (!data_ || !context_) throw std::bad_alloc();
    auto* const context = static_cast<pcre2_match_context*>(context_.get());
    pcre2_set_match_limit(context, match_steps_max);
    pcre2_set_heap_limit(context, heap_kib_max);
}

pattern_matcher::outcome pattern_matcher::search(const pattern& p, std::string_view text) {
    const int found = pcre2_match(
        code_of(p.code_.get()),
        bytes_of(text),
        text.size(),
        0,
        PCRE2_NO_UTF_CHECK,
        static_cast<pcre2_match_data*>(data_.get()),
        static_cast<pcre2_match_context*>(context_.get())
    );
    if (found >= 0) return outcome::found;
    return found == PCRE2_ERROR_NOMATCH ? outcome::absent : outcome::too_costly;
}

}  // namespace millrace::schema
