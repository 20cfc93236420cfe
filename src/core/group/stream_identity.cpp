#include "group/stream_identity.hpp"

#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace millrace {

namespace {

struct placed {
    std::string_view place;
    std::int64_t moment{0};
};

std::optional<placed> parse(std::string_view identity) {
    constexpr std::string_view between = " of ";
    const auto at = identity.rfind(between);
    if (at == std::string_view::npos) return std::nullopt;
    placed found{identity.substr(0, at), 0};
    const auto number = identity.substr(at + between.size());
    const auto* const end = number.data() + number.size();
    const auto read = std::from_chars(number.data(), end, found.moment);
    if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
    return found;
}

bool same_place(std::string_view known, std::string_view listed) {
    if (known == listed) return true;
    return !known.starts_with("arn:") && listed.starts_with("arn:") &&
           listed.substr(listed.rfind('/') + 1) == known;
}

}  // namespace

stream_relation relation_of(std::string_view known, std::string_view listed) {
    if (known == listed) return stream_relation::same;
    const auto before = parse(known);
    const auto now = parse(listed);
    if (!before || !now) return stream_relation::remade;
    if (!same_place(before->place, now->place) || now->moment < before->moment) return stream_relation::other;
    return now->moment == before->moment ? stream_relation::same : stream_relation::remade;
}

error other_stream(std::string_view known, std::string_view listed) {
    return {
        errc::invalid_argument,
        retry_advice::never,
        false,
        fmt::format(
            "the group has checkpoints of the stream \"{}\", but this process reads \"{}\" (what follows "
            "\"of\" is the moment of creation in milliseconds); correct the region, the account or the "
            "endpoint, or read it as another group or with another state; nothing was changed",
            known,
            listed
        )};
}

}  // namespace millrace
