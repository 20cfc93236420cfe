/// Finds the type and message in the body of an error reply: JSON, CBOR, XML, or a page of something between.
///
/// A pure function over bytes from outside; whatever they are, it returns.
#pragma once

#include <string>
#include <string_view>

namespace millrace::aws {

struct service_error {
    std::string type;     ///< Without namespace; empty when neither header nor body names one.
    std::string message;  ///< Empty when there is none.

    bool operator==(const service_error&) const = default;
};

/// `type_header` is X-Amzn-ErrorType, which goes before what the body says; empty when absent.
[[nodiscard]] service_error read_error(
    std::string_view content_type, std::string_view type_header, std::string_view body
);

}  // namespace millrace::aws
