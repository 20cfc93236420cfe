/// Writes one JSON value as Avro binary: the walk that the encoder and the compiler of defaults share. Pure.
///
/// What does not fit is recorded as a small `avro_fault`, not as text, because a branch of a union that does
/// not fit is no failure yet; `explain` makes the sentence.
#pragma once

#include "avro/plan.hpp"
#include "json/document.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::schema {

struct avro_fault {
    enum class kind : std::uint8_t {
        none,
        other_kind,        ///< Another kind of value than the type takes.
        out_of_range,      ///< A number that the type does not hold.
        fraction,          ///< A number that is not whole.
        too_precise,       ///< More digits behind the point than the scale.
        too_long,          ///< More digits than the precision.
        bad_text,          ///< Text that the logical type or the special numbers do not know.
        bad_character,     ///< Beyond U+00FF in bytes.
        wrong_size,        ///< Of a fixed.
        no_symbol,         ///< Not of the enumeration.
        missing_field,     ///< `detail` is its place.
        unknown_field,     ///< `token` is the key.
        doubled_key,       ///< `token` is the second key.
        no_branch,         ///< No branch of a union takes the value.
        no_wrapper,        ///< Not null and not an object with one member.
        unknown_branch,    ///< `token` is the key.
        too_large,         ///< Encoded, with all defaults, beyond the limit.
        too_many_ways,     ///< The branches of nested unions multiply.
        default_not_ready  ///< `detail` is the field; only while defaults are compiled.
    };

    kind what{kind::none};
    std::uint32_t node{0};
    json_document::index token{0};
    std::uint32_t detail{0};
};

/// Keys of an event may be data, and the path shows only those that are names of the schema; a schema's own
/// are not.
enum class json_keys : std::uint8_t { may_be_data, are_names };

/// `$.lines[2].price: expected long, found a string of 3 characters`. Never shows the value; of unknown keys
/// of a record at most 40 characters.
[[nodiscard]] std::string explain(
    const avro_plan& plan, const json_document& document, const avro_fault& fault, json_keys keys
);

class avro_writer {
public:
    enum class unions : std::uint8_t {
        named,    ///< null, or {"branch": value}.
        plain,    ///< The value alone: the most specific branch that takes it.
        in_order  ///< The value alone: the first branch that takes it, as for defaults.
    };

    struct options {
        unions style{unions::named};
        bool readable{true};  ///< Logical types by their readable forms, beside those of Avro's JSON.
        bool ignore_unknown{false};
        std::size_t bytes_max{std::numeric_limits<std::size_t>::max()};  ///< Of the encoded value.
    };

    /// Kept between values, so that a value costs no allocation.
    struct scratch {
        std::vector<json_document::index> slots;
        std::vector<std::uint64_t> choices;
    };

    avro_writer(
        const avro_plan& plan, const json_document& document, options how, scratch& kept, std::string& out
    );

    /// Appends the value; false leaves a part of it behind and a `fault()`.
    [[nodiscard]] bool write(std::uint32_t node, json_document::index token);

    [[nodiscard]] const avro_fault& fault() const noexcept { return fault_; }

private:
    using index = json_document::index;

    bool refuse(avro_fault::kind what, std::uint32_t node, index token, std::uint32_t detail = 0);
    bool integer(std::uint32_t node, index token);
    bool temporal_text(std::uint32_t node, index token);
    bool whole_number(std::uint32_t node, index token, std::int64_t value);
    template <class Float>
    bool floating(std::uint32_t node, index token);
    bool string(std::uint32_t node, index token);
    bool bytes(std::uint32_t node, index token);
    bool decimal_value(std::uint32_t node, index token);
    bool fixed(std::uint32_t node, index token);
    bool duration(std::uint32_t node, index token);
    bool enumeration(std::uint32_t node, index token);
    bool array(std::uint32_t node, index token);
    bool map(std::uint32_t node, index token);
    bool record(std::uint32_t node, index token);
    bool bind_fields(std::uint32_t node, index token, std::size_t slots);
    bool absent_field(std::uint32_t node, index token, std::uint32_t place);
    bool union_value(std::uint32_t node, index token);
    bool named_branch(std::uint32_t node, index token);
    bool plain_branch(std::uint32_t node, index token);
    bool try_branches(std::uint32_t node, index token, std::size_t first_choice);
    bool branch(std::uint32_t node, std::uint32_t place, index token);

    void long_number(std::int64_t value);
    void raw_characters(std::string_view text);

    const avro_plan& plan_;
    const json_document& document_;
    options how_;
    scratch& kept_;
    std::string& out_;
    avro_fault fault_;
    std::size_t tries_left_;
    std::size_t end_max_;
};

/// How well a branch suits the kind of a value, lower is more specific; 0 when it never takes it.
[[nodiscard]] unsigned suits(const avro_node& branch, const json_token& token, bool readable) noexcept;

}  // namespace millrace::schema
