/// Which group a lease store serves: a name on one stream. The same name on another stream is another group.
#pragma once

#include <compare>
#include <string>

namespace millrace {

struct group_key {
    std::string stream;  ///< Empty for what is shared and is no stream.
    std::string name;

    auto operator<=>(const group_key&) const = default;
};

}  // namespace millrace
