/// What an error reply of an AWS service means, and what can be done about it.
///
/// Pure functions over the status and what `error_body.hpp` found.
#pragma once

#include <millrace/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::aws {

enum class failure_class : std::uint8_t {
    throttled,     ///< Not carried out; try again later.
    transient,     ///< A fault of the service or the network; try again soon.
    clock_skew,    ///< Signed with a wrong time, or with a wrong secret: sign anew by the service's clock,
                   ///< once.
    expired_keys,  ///< Get other keys, once.
    final          ///< The same request fails again now.
};

struct judgement {
    failure_class kind{failure_class::final};
    errc code{errc::internal};
    retry_advice retry{retry_advice::never};
    bool effect_possible{false};  ///< The request may have been carried out.
    std::string_view advice;      ///< What a person can do; a constant.

    bool operator==(const judgement&) const = default;
};

/// `type` without namespace, as `bare_type` gives it; empty when the body was not of an AWS service.
[[nodiscard]] judgement classify(int status, std::string_view type, std::string_view message);

/// "Foo" of "com.amazonaws.dynamodb.v20120810#Foo" and of "Foo:http://internal.amazon.com/coral/".
[[nodiscard]] std::string_view bare_type(std::string_view type);

/// The first line of a service's message, bounded, without values that it quotes.
[[nodiscard]] std::string shown_message(std::string_view message);

}  // namespace millrace::aws
