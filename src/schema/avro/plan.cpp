#include "avro/plan.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

/// `places` are in the order of their names.
template <class Name>
std::uint32_t find(std::span<const std::uint32_t> places, std::string_view name, Name name_of_place) {
    const auto found = std::lower_bound(
        places.begin(),
        places.end(),
        name,
        [&](std::uint32_t place, std::string_view wanted) { return name_of_place(place) < wanted; }
    );
    return found != places.end() && name_of_place(*found) == name ? *found : avro_plan::none;
}

std::string listed_symbols(const avro_plan& plan, const avro_node& node) {
    constexpr std::uint32_t shown = 8;
    std::string list;
    for (std::uint32_t i = 0; i < std::min(node.count, shown); ++i)
        list += fmt::format("{}{}", i == 0 ? "" : ", ", plan.text(plan.symbols[node.first + i]));
    return node.count > shown ? list + ", ..." : list;
}

std::string listed_branches(const avro_plan& plan, const avro_node& node) {
    constexpr std::uint32_t shown = 8;
    std::string list;
    for (std::uint32_t i = 0; i < std::min(node.count, shown); ++i) {
        const auto& branch = plan.nodes[plan.branches[node.first + i]];
        list += fmt::format("{}{}", i == 0 ? "" : ", ", plan.branch_name(branch));
        if (branch.logical != avro_logical::none) list += fmt::format(" ({})", name_of(branch.logical));
    }
    return node.count > shown ? list + ", ..." : list;
}

}  // namespace

std::uint32_t avro_plan::find_field(const avro_node& record, std::string_view name) const noexcept {
    const std::span places(by_name.data() + record.sorted, record.count);
    return find(places, name, [&](std::uint32_t place) { return field_name(record, place); });
}

std::uint32_t avro_plan::find_symbol(const avro_node& enumeration, std::string_view name) const noexcept {
    const std::span places(by_name.data() + enumeration.sorted, enumeration.count);
    return find(places, name, [&](std::uint32_t place) { return text(symbols[enumeration.first + place]); });
}

std::string_view avro_plan::branch_name(const avro_node& node) const noexcept {
    return node.name.size != 0 ? text(node.name) : name_of(node.kind);
}

std::string_view name_of(avro_kind kind) noexcept {
    constexpr std::array<std::string_view, 14> names{
        "null",
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "bytes",
        "string",
        "record",
        "enum",
        "array",
        "map",
        "union",
        "fixed"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(avro_logical logical) noexcept {
    constexpr std::array<std::string_view, 11> names{
        "",
        "decimal",
        "date",
        "time-millis",
        "time-micros",
        "timestamp-millis",
        "timestamp-micros",
        "local-timestamp-millis",
        "local-timestamp-micros",
        "uuid",
        "duration"};
    return names[static_cast<std::size_t>(logical)];
}

std::string describe(const avro_plan& plan, std::uint32_t index) {
    const auto& node = plan.nodes[index];
    if (node.logical == avro_logical::decimal)
        return fmt::format("decimal({}, {})", node.precision, node.scale);
    if (node.logical != avro_logical::none) return std::string(name_of(node.logical));
    switch (node.kind) {
        case avro_kind::record:
            return fmt::format("record {}", plan.text(node.name));
        case avro_kind::enumeration:
            return fmt::format("enum {} ({})", plan.text(node.name), listed_symbols(plan, node));
        case avro_kind::fixed:
            return fmt::format("fixed {} of {} bytes", plan.text(node.name), node.count);
        case avro_kind::union_:
            return fmt::format("one of {}", listed_branches(plan, node));
        default:
            return std::string(name_of(node.kind));
    }
}

}  // namespace millrace::schema
