/// Where the demonstration's stream and the group's state are.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace millrace::demo {

struct places {
    std::string sink;
    std::function<std::string(const std::string& topic)> stream;
    std::string state;
};

/// SQLite files below a folder.
[[nodiscard]] places in_files(const std::filesystem::path& folder);

/// Servers that speak the API of Kinesis and of DynamoDB, by their addresses. Sets the environment's AWS keys
/// to an account of its own, so that stream names are free there, and names a table of its own.
[[nodiscard]] places in_kinesis(const std::string& kinesis, const std::string& dynamodb);

}  // namespace millrace::demo
