/// Reads the form of AWS's shared files: `[section]` lines with `name = value` lines below.
///
/// Pure. What the sections mean is `profiles.hpp`'s to know.
#pragma once

#include <millrace/error.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::aws {

struct ini_section {
    std::string name;  ///< What stands between the brackets, without blanks at its ends.

    /// Names in lower case. Indented lines below a name belong to its value, each behind a line feed.
    std::map<std::string, std::string, std::less<>> values;
};

constexpr std::size_t ini_bytes_max = std::size_t{1} << 20;

/// The sections in their order; a section may occur twice. `#` and `;` begin a comment on a line of their
/// own, and behind a blank in a value. `invalid_config` names `file` and the line, never what it holds.
[[nodiscard]] result<std::vector<ini_section>> parse_ini(std::string_view text, std::string_view file);

}  // namespace millrace::aws
