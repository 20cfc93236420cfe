#include "credentials/region.hpp"

#include "credentials/role_values.hpp"

#include <algorithm>

namespace millrace::aws {

bool is_region(std::string_view name) {
    return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
           });
}

result<std::string> region_of(const environment& variables, const profiles* files) {
    auto region = variables("AWS_REGION");
    if (region.empty()) region = variables("AWS_DEFAULT_REGION");
    if (region.empty() && files != nullptr) {
        const auto named = variables("AWS_PROFILE");
        const auto found = files->by_name.find(named.empty() ? "default" : named);
        if (found != files->by_name.end()) region = value_of(found->second, "region");
    }
    if (region.empty() || is_region(region)) return region;
    return fail(
        errc::invalid_config,
        "the region in AWS_REGION, AWS_DEFAULT_REGION or the profile is no region's name; write it like "
        "eu-west-1"
    );
}

}  // namespace millrace::aws
