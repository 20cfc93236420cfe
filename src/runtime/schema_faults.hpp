/// All that is wrong with the settings for schemas, for who knows where each of them was written. Reads no
/// file.
#pragma once

#include <millrace/schemas.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace millrace {

struct schema_fault {
    std::string setting;   ///< Such as `urls` or `rules`.
    std::size_t index{0};  ///< Of an address or a rule.
    std::string part;      ///< Of a rule: `value`, `key`, or `topic`.
    std::string what;
};

[[nodiscard]] std::vector<schema_fault> faults_of(const schema_settings& settings);

}  // namespace millrace
