/// JSON text as a flat list of tokens that keeps what a DOM loses: the digits of every number, the order of
/// the members and doubled keys.
///
/// The tokens refer to the text, which the caller keeps while it uses them. A document that is used again
/// keeps its memory, up to a limit, so reading many small values allocates nothing. Not thread-safe.
#pragma once

#include <millrace/error.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::schema {

enum class json_kind : std::uint8_t { null, boolean, number, string, array, object };

struct json_token {
    std::uint32_t text{0};  ///< Where the text of a number or a string begins.
    std::uint32_t size{0};  ///< Bytes of the text; of an array the elements, of an object the members.
    std::uint32_t end{0};   ///< The token behind this value.
    json_kind kind{json_kind::null};
    bool truth{false};     ///< Of a boolean.
    bool integral{false};  ///< A number without a point and an exponent.
    bool unescaped{false};
};

struct json_limits {
    /// A longer text is refused. A token costs 16 bytes, and there is at most one for each byte of the text.
    std::size_t bytes_max{8 * 1024 * 1024};

    /// How deep arrays and objects may be nested; also bounds the recursion of whoever walks the document.
    std::size_t depth_max{128};
};

class json_document {
public:
    using index = std::uint32_t;
    static constexpr index none = std::numeric_limits<index>::max();
    static constexpr index root = 0;

    explicit json_document(json_limits limits = {});
    ~json_document();
    json_document(json_document&&) noexcept;
    json_document& operator=(json_document&&) noexcept;

    /// Strict JSON in UTF-8: one value, no comment, no lone surrogate. `json` outlives the use of the tokens.
    /// The error names the kind of the fault and the byte, never the text.
    [[nodiscard]] result<void> read(std::string_view json);

    [[nodiscard]] const json_token& at(index token) const noexcept { return tokens_[token]; }
    [[nodiscard]] std::size_t size() const noexcept { return tokens_.size(); }

    /// The characters of a string or a key without escapes, the digits of a number as they were written.
    [[nodiscard]] std::string_view text(index token) const noexcept {
        const auto& t = tokens_[token];
        return {(t.unescaped ? unescaped_.data() : json_.data()) + t.text, t.size};
    }

    /// The value of an object's last member of that name, or `none`.
    [[nodiscard]] index member(index object, std::string_view key) const noexcept;

    /// The second of two members with one name, or `none`.
    [[nodiscard]] index doubled_key(index object) const;

    using is_known_name = std::function<bool(std::string_view)>;

    /// Where a value stands: `$.customer.lines[2].price`. Keys may be data; one that `known` does not know is
    /// shown as its place among the members: `$.labels{3}` is the third.
    [[nodiscard]] std::string path_of(index token, const is_known_name& known) const;
    [[nodiscard]] std::string path_of(index token) const;

private:
    struct parser;

    void forget();

    json_limits limits_;
    std::string_view json_;
    std::vector<json_token> tokens_;
    std::string unescaped_;  ///< Strings that were written with escapes.
    std::unique_ptr<parser> parser_;
};

/// `an array of 3 elements`, `a string of 12 characters`: what a value is, without showing it.
[[nodiscard]] std::string describe(const json_document& document, json_document::index token);

}  // namespace millrace::schema
