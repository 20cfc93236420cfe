#include "avro/writer.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace millrace::schema {

namespace {

using fault_kind = avro_fault::kind;

/// Whether a key of the value is a name of the schema, and not data.
bool is_name_of(const avro_plan& plan, std::string_view key) {
    return std::any_of(
               plan.fields.begin(),
               plan.fields.end(),
               [&](const avro_field& f) { return plan.text(f.name) == key; }
           ) ||
           std::any_of(plan.branches.begin(), plan.branches.end(), [&](std::uint32_t node) {
               return plan.branch_name(plan.nodes[node]) == key;
           });
}

std::string_view readable_form(avro_logical logical) {
    switch (logical) {
        case avro_logical::date:
            return " (\"2026-11-30\", or days as a number)";
        case avro_logical::time_millis:
            return " (\"10:15:30.123\", or milliseconds of the day)";
        case avro_logical::time_micros:
            return " (\"10:15:30.123456\", or microseconds of the day)";
        case avro_logical::timestamp_millis:
            return " (\"2026-11-30T10:15:30.123Z\" with its zone, or milliseconds as a number)";
        case avro_logical::timestamp_micros:
            return " (\"2026-11-30T10:15:30.123456Z\" with its zone, or microseconds as a number)";
        case avro_logical::local_timestamp_millis:
            return " (\"2026-11-30T10:15:30.123\" without a zone, or milliseconds as a number)";
        case avro_logical::local_timestamp_micros:
            return " (\"2026-11-30T10:15:30.123456\" without a zone, or microseconds as a number)";
        case avro_logical::decimal:
            return " (a number, or its digits as a string)";
        case avro_logical::duration:
            return " (an object of months, days and millis, or 12 bytes as a string)";
        default:
            return "";
    }
}

std::string expected(const avro_plan& plan, std::uint32_t node) {
    return fmt::format("expected {}{}", describe(plan, node), readable_form(plan.nodes[node].logical));
}

std::string missing_field(const avro_plan& plan, const avro_fault& fault) {
    const auto& node = plan.nodes[fault.node];
    const auto& field = plan.fields[node.first + fault.detail];
    return fmt::format(
        "the field \"{}\" of {} is missing and has no default; expected {}",
        plan.text(field.name),
        describe(plan, fault.node),
        describe(plan, field.node)
    );
}

std::string reason(const avro_plan& plan, const json_document& document, const avro_fault& fault) {
    const auto wanted = [&] { return expected(plan, fault.node); };
    const auto found = [&] { return describe(document, fault.token); };
    switch (fault.what) {
        case fault_kind::out_of_range:
            return wanted() + ", found a number out of its range";
        case fault_kind::fraction:
            return wanted() + ", found a number that is not whole";
        case fault_kind::too_precise:
            return wanted() + ", found more digits behind the point";
        case fault_kind::too_long:
            return wanted() + ", found more digits";
        case fault_kind::bad_text:
            return fmt::format("{}, found {} that is none", wanted(), found());
        case fault_kind::bad_character:
            return wanted() + " as characters up to U+00FF, found a string with one beyond";
        case fault_kind::no_symbol:
            return fmt::format("{}, found another string", wanted());
        case fault_kind::missing_field:
            return missing_field(plan, fault);
        case fault_kind::unknown_field:
            // Its name is the row's, so it may be data.
            return fmt::format("a field that {} does not have", describe(plan, fault.node));
        case fault_kind::doubled_key:
            return "a name stands twice in one object";
        case fault_kind::no_wrapper:
            return fmt::format(
                "{} as null or an object with the type's name before the value (\"unions: plain\" takes the "
                "value "
                "alone), found {}",
                wanted(),
                found()
            );
        case fault_kind::unknown_branch:
            return fmt::format("{}, found an object that names another type", wanted());
        case fault_kind::too_large:
            return "encoded, with the defaults of absent fields, the value exceeds its limit";
        case fault_kind::too_many_ways:
            return "the unions around it fit in too many ways; give the types' names (\"unions: avro\")";
        default:
            return fmt::format("{}, found {}", wanted(), found());
    }
}

}  // namespace

std::string explain(
    const avro_plan& plan, const json_document& document, const avro_fault& fault, json_keys keys
) {
    const auto known = [&](std::string_view key) {
        return keys == json_keys::are_names || is_name_of(plan, key);
    };
    return fmt::format("{}: {}", document.path_of(fault.token, known), reason(plan, document, fault));
}

}  // namespace millrace::schema
