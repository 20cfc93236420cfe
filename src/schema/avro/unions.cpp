#include "avro/writer.hpp"

#include <algorithm>

namespace millrace::schema {

using fault_kind = avro_fault::kind;

namespace {

/// What another branch cannot mend.
bool ends_all(fault_kind what) {
    return what == fault_kind::too_large || what == fault_kind::too_many_ways ||
           what == fault_kind::default_not_ready;
}

unsigned suits_number(const avro_node& branch, bool integral, bool readable) {
    const bool exact = readable && branch.logical == avro_logical::decimal;
    switch (branch.kind) {
        case avro_kind::int_:
            return integral ? 1 : 4;
        case avro_kind::long_:
            return integral ? 2 : 5;
        case avro_kind::bytes:
        case avro_kind::fixed:
            return !exact ? 0 : integral ? 3 : 1;
        case avro_kind::double_:
            return integral ? 4 : 2;
        case avro_kind::float_:
            return integral ? 5 : 3;
        default:
            return 0;
    }
}

unsigned suits_string(const avro_node& branch, bool readable) {
    const bool logical = readable && branch.logical != avro_logical::none;
    switch (branch.kind) {
        case avro_kind::enumeration:
            return 1;
        case avro_kind::string:
            return logical ? 2 : 6;
        case avro_kind::int_:
        case avro_kind::long_:
            return logical ? 3 : 0;
        case avro_kind::bytes:
            return logical ? 4 : 7;
        case avro_kind::fixed:
            return logical && branch.logical == avro_logical::decimal ? 4 : 5;
        case avro_kind::double_:
            return 8;
        case avro_kind::float_:
            return 9;
        default:
            return 0;
    }
}

unsigned suits_object(const avro_node& branch, bool readable) {
    if (branch.kind == avro_kind::record) return 1;
    if (branch.kind == avro_kind::map) return 3;
    return readable && branch.logical == avro_logical::duration ? 2 : 0;
}

}  // namespace

unsigned suits(const avro_node& branch, const json_token& token, bool readable) noexcept {
    switch (token.kind) {
        case json_kind::null:
            return branch.kind == avro_kind::null ? 1 : 0;
        case json_kind::boolean:
            return branch.kind == avro_kind::boolean ? 1 : 0;
        case json_kind::number:
            return suits_number(branch, token.integral, readable);
        case json_kind::string:
            return suits_string(branch, readable);
        case json_kind::array:
            return branch.kind == avro_kind::array ? 1 : 0;
        case json_kind::object:
            return suits_object(branch, readable);
    }
    return 0;
}

bool avro_writer::union_value(std::uint32_t node, index token) {
    return how_.style == unions::named ? named_branch(node, token) : plain_branch(node, token);
}

bool avro_writer::branch(std::uint32_t node, std::uint32_t place, index token) {
    long_number(place);
    return write(plan_.branches[plan_.nodes[node].first + place], token);
}

bool avro_writer::named_branch(std::uint32_t node, index token) {
    const auto& type = plan_.nodes[node];
    const auto& value = document_.at(token);
    const bool null = value.kind == json_kind::null;
    if (!null && (value.kind != json_kind::object || value.size != 1)) {
        return refuse(fault_kind::no_wrapper, node, token);
    }
    const auto name = null ? name_of(avro_kind::null) : document_.text(token + 1);
    for (std::uint32_t place = 0; place < type.count; ++place) {
        if (plan_.branch_name(plan_.nodes[plan_.branches[type.first + place]]) != name) continue;
        return branch(node, place, null ? token : token + 2);
    }
    return null ? refuse(fault_kind::no_branch, node, token)
                : refuse(fault_kind::unknown_branch, node, token + 1);
}

bool avro_writer::plain_branch(std::uint32_t node, index token) {
    const auto& type = plan_.nodes[node];
    auto& choices = kept_.choices;
    const std::size_t first = choices.size();
    for (std::uint32_t place = 0; place < type.count; ++place) {
        const auto& candidate = plan_.nodes[plan_.branches[type.first + place]];
        const auto rank = suits(candidate, document_.at(token), how_.readable);
        if (rank == 0) continue;
        const std::uint64_t order = how_.style == unions::plain ? rank : 0;
        choices.push_back(order << 32U | place);
    }
    if (choices.size() == first) return refuse(fault_kind::no_branch, node, token);
    bool fits = false;
    if (choices.size() == first + 1) {
        fits = branch(node, static_cast<std::uint32_t>(choices[first]), token);
    } else {
        std::sort(choices.begin() + static_cast<std::ptrdiff_t>(first), choices.end());
        fits = try_branches(node, token, first);
    }
    choices.resize(first);
    return fits;
}

bool avro_writer::try_branches(std::uint32_t node, index token, std::size_t first_choice) {
    const std::size_t begin = out_.size();
    const std::size_t choices = kept_.choices.size();
    avro_fault furthest;
    for (std::size_t i = first_choice; i < choices; ++i) {
        if (branch(node, static_cast<std::uint32_t>(kept_.choices[i]), token)) return true;
        out_.resize(begin);
        if (ends_all(fault_.what)) return false;
        if (fault_.token > furthest.token) furthest = fault_;
    }
    // The branch that went furthest into the value is the one that was probably meant.
    if (furthest.token <= token) return refuse(fault_kind::no_branch, node, token);
    fault_ = furthest;
    return false;
}

}  // namespace millrace::schema
