/// The texts of a CBOR map, for small replies; whatever else is in it is skipped.
///
/// A pure function over bytes from outside: stops where they are malformed, with what was found before.
#pragma once

#include <functional>
#include <string_view>

namespace millrace::aws {

/// Calls `found` with each key of the outermost map whose value is a text, and that text.
void read_cbor_texts(
    std::string_view bytes, const std::function<void(std::string_view key, std::string_view value)>& found
);

}  // namespace millrace::aws
