#include "avro/encoder.hpp"
#include "json_schema/checker.hpp"
#include "targets.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace millrace::fuzz {

namespace {

using namespace schema;

/// The first line is the schema, the rest the value.
std::pair<std::string_view, std::string_view> halves(std::string_view input) {
    const auto line = input.find('\n');
    return {
        input.substr(0, line), line == std::string_view::npos ? std::string_view{} : input.substr(line + 1)};
}

/// Reads what was encoded, without its values, as a reader of the schema would.
class reader {
public:
    reader(const avro_plan& plan, std::string_view bytes) : plan_(plan), rest_(bytes) {}

    void read(std::uint32_t number) {
        const auto& node = plan_.nodes[number];
        switch (node.kind) {
            case avro_kind::null:
                return;
            case avro_kind::boolean:
                require(static_cast<unsigned char>(take(1).front()) < 2, "a boolean is 0 or 1");
                return;
            case avro_kind::int_: {
                const auto value = long_number();
                require(value >= INT32_MIN && value <= INT32_MAX, "an int fits 32 bits");
                return;
            }
            case avro_kind::long_:
                (void)long_number();
                return;
            case avro_kind::float_:
                take(4);
                return;
            case avro_kind::double_:
                take(8);
                return;
            case avro_kind::bytes:
            case avro_kind::string:
                take(size());
                return;
            case avro_kind::fixed:
                take(node.count);
                return;
            case avro_kind::enumeration:
                require(size() < node.count, "a symbol is known");
                return;
            case avro_kind::array:
            case avro_kind::map:
                blocks(node);
                return;
            case avro_kind::record:
                for (std::uint32_t i = 0; i < node.count; ++i)
                    read(plan_.fields[node.first + i].node);
                return;
            case avro_kind::union_: {
                const auto place = size();
                require(place < node.count, "a branch is known");
                read(plan_.branches[node.first + static_cast<std::uint32_t>(place)]);
                return;
            }
        }
    }

    [[nodiscard]] bool at_end() const { return rest_.empty(); }

private:
    void blocks(const avro_node& node) {
        for (auto items = size(); items != 0; items = size()) {
            for (; items != 0; --items) {
                if (node.kind == avro_kind::map) take(size());
                read(node.first);
            }
        }
    }

    std::string_view take(std::size_t n) {
        require(n <= rest_.size(), "nothing is cut off");
        const auto taken = rest_.substr(0, n);
        rest_.remove_prefix(n);
        return taken;
    }

    std::int64_t long_number() {
        std::uint64_t bits = 0;
        for (unsigned shift = 0;; shift += 7) {
            require(shift < 70, "a number has at most ten bytes");
            const auto byte = static_cast<unsigned char>(take(1).front());
            bits |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80U) break;
        }
        return static_cast<std::int64_t>((bits >> 1U) ^ (~(bits & 1U) + 1));
    }

    std::size_t size() {
        const auto value = long_number();
        require(value >= 0, "a size is not negative");
        return static_cast<std::size_t>(value);
    }

    const avro_plan& plan_;
    std::string_view rest_;
};

void encode(const avro_schema& schema, std::string_view value, const avro_options& options) {
    avro_encoder encoder(options);
    std::string bytes = "kept";
    if (const auto encoded = encoder.encode(schema, value, bytes); !encoded) {
        require(!encoded.error().detail.empty(), "a refusal says why");
        require(bytes == "kept", "a refused value leaves nothing behind");
        return;
    }
    reader back(schema.plan(), std::string_view(bytes).substr(4));
    back.read(schema.plan().root);
    require(back.at_end(), "nothing is left over");
}

}  // namespace

void avro_values(std::string_view input) {
    const auto [text, value] = halves(input);
    const auto schema = parse_avro_schema(text, {}, {.default_bytes_max = 64 * 1024});
    if (!schema) {
        require(!schema.error().detail.empty(), "nonsense is named");
        return;
    }
    for (const auto unions : {union_style::avro, union_style::plain}) {
        for (const auto logical : {logical_values::readable, logical_values::avro})
            encode(
                *schema,
                value,
                {.unions = unions,
                 .logical = logical,
                 .ignore_unknown_fields = logical == logical_values::avro}
            );
    }
}

void json_schemas(std::string_view input) {
    const auto [text, value] = halves(input);
    const auto schema = parse_json_schema(text);
    if (!schema) {
        require(!schema.error().detail.empty(), "nonsense is named");
        return;
    }
    json_checker checker({.limits = {}, .steps_per_value = 10});
    const auto first = checker.check(*schema, value);
    require(first || !first.error().detail.empty(), "a refusal says why");
    const auto second = checker.check(*schema, value);
    require(first.has_value() == second.has_value(), "the same value is judged alike again");
    require(first || first.error() == second.error(), "and for the same reason");
}

}  // namespace millrace::fuzz
