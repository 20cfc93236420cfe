/// The members of one request, by their types on either wire. A view: the request must outlive it.
#pragma once

#include "support/kinesis_fake/operations.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::kinesis_fake {

class operations::members {
public:
    explicit members(const value& in) : in_(in) {}

    [[nodiscard]] bool has(std::string_view name) const { return find(in_, name) != nullptr; }

    [[nodiscard]] std::optional<std::string> text(std::string_view name) const {
        const auto* found = find(in_, name);
        const auto* made = found != nullptr ? std::get_if<std::string>(&found->is) : nullptr;
        return made != nullptr ? std::optional(*made) : std::nullopt;
    }
    [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const {
        const auto* found = find(in_, name);
        const auto* made = found != nullptr ? std::get_if<std::int64_t>(&found->is) : nullptr;
        return made != nullptr ? std::optional(*made) : std::nullopt;
    }
    [[nodiscard]] std::optional<wall_time> time(std::string_view name) const {
        const auto* found = find(in_, name);
        const auto ms = found != nullptr ? as_milliseconds(*found) : std::nullopt;
        return ms ? std::optional(wall_time{milliseconds{*ms}}) : std::nullopt;
    }
    [[nodiscard]] std::optional<std::string> blob(std::string_view name) const {
        const auto* found = find(in_, name);
        return found != nullptr ? as_blob(*found) : std::nullopt;
    }
    [[nodiscard]] const value_list* list(std::string_view name) const {
        const auto* found = find(in_, name);
        return found != nullptr ? std::get_if<value_list>(&found->is) : nullptr;
    }

    /// The stream by its name or by the end of its ARN; empty when neither or both are given.
    [[nodiscard]] std::string stream() const {
        const auto name = text("StreamName");
        const auto arn = text("StreamARN");
        if (name.has_value() == arn.has_value()) return {};
        if (name) return *name;
        const auto slash = arn->rfind(":stream/");
        return arn->starts_with("arn:aws:kinesis:") && slash != std::string::npos ? arn->substr(slash + 8)
                                                                                  : "";
    }

    /// The first member that is not one of `known`.
    [[nodiscard]] std::string unknown(const std::vector<std::string_view>& known) const {
        const auto* all = std::get_if<value_map>(&in_.is);
        if (all == nullptr) return "(the body is no map)";
        for (const auto& [name, ignored] : *all) {
            if (std::ranges::find(known, name) == known.end()) return name;
        }
        return {};
    }

private:
    const value& in_;
};

inline tl::unexpected<refusal> invalid(std::string message) {
    return tl::unexpected(refusal{"ValidationException", std::move(message)});
}

inline value text(std::string s) {
    return {std::move(s)};
}

}  // namespace millrace::kinesis_fake
