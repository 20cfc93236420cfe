/// All that is wrong with the options of a registry's client, for who knows where each of them was written.
/// Pure.
#pragma once

#include "registry_client.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::registry {

struct option_fault {
    std::string_view option;  ///< Such as "urls".
    std::size_t index{0};     ///< Of an option that is a list.
    std::string what;         ///< Names the option, without showing secrets.
};

[[nodiscard]] std::vector<option_fault> faults_of(const registry_options& options);

}  // namespace millrace::registry
