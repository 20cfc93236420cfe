/// The profiles of AWS's two shared files, merged.
///
/// Pure, but for `read_profiles`. What a profile's values ask for is decided in `key_plan.hpp`.
#pragma once

#include "credentials/environment.hpp"

#include <millrace/error.hpp>

#include <map>
#include <string>
#include <string_view>

namespace millrace::aws {

/// Values by their names in lower case.
using profile = std::map<std::string, std::string, std::less<>>;

struct profiles {
    std::map<std::string, profile, std::less<>> by_name;
    std::string looked_in;  ///< The files, for messages.
};

/// A shared file's path and content.
struct shared_file {
    std::string path;
    std::string content;
};

/// In the credentials file a profile is `[name]`; in the config file `[default]` or `[profile name]`, and
/// other sections are of no interest. Where both give a value, the credentials file's holds.
[[nodiscard]] result<profiles> merge_profiles(const shared_file& credentials, const shared_file& config);

/// The paths by AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, or below HOME; empty where nothing says.
[[nodiscard]] shared_file credentials_file(const environment& variables);
[[nodiscard]] shared_file config_file(const environment& variables);

/// Reads both files; one that does not exist is empty.
[[nodiscard]] result<profiles> read_profiles(const environment& variables);

}  // namespace millrace::aws
