#include "places.hpp"

#include <cstdint>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

namespace millrace::demo {

places in_files(const std::filesystem::path& folder) {
    const auto streams = "local:" + (folder / "streams.db").string();
    return {
        streams,
        [streams](const std::string& topic) { return streams + "/" + topic; },
        "sqlite:" + (folder / "state.db").string()};
}

places in_kinesis(const std::string& kinesis, const std::string& dynamodb) {
    std::random_device entropy;
    const auto account = std::uniform_int_distribution<std::uint64_t>{1, 999'999'999'999}(entropy);
    const auto account_id = fmt::format("{:012}", account);
    ::setenv("AWS_ACCESS_KEY_ID", account_id.c_str(), 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "demonstration", 1);
    ::unsetenv("AWS_SESSION_TOKEN");
    return {
        "kinesis://eu-west-1?endpoint=" + kinesis,
        [kinesis](const std::string& topic) {
            return "kinesis://eu-west-1/" + topic + "?endpoint=" + kinesis;
        },
        fmt::format("dynamodb://eu-west-1/millrace-demo-{}?endpoint={}", account_id, dynamodb)};
}

}  // namespace millrace::demo
