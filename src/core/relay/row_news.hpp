/// What the log is told about rows: never their content, and of a key only a hash.
#pragma once

#include <millrace/names.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace {

struct row_news {
    row_id first;
    std::size_t rows{1};
    std::string topic;
    std::uint32_t lane{0};  ///< A hash of topic, key and partition.
    std::uint32_t attempts{0};
    std::string reason;  ///< Short and stable.
    std::string detail;
};

}  // namespace millrace
