#include "signing/sign.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace millrace::aws {
namespace {

namespace fs = std::filesystem;

const fs::path folder = MILLRACE_SOURCE_DIR "/tests/unit/aws/vectors";

std::string content_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error("no file " + file.string());
    return {std::istreambuf_iterator<char>(in), {}};
}

/// A request as it stands in a file.
struct written_request {
    std::string method, path, query, body;
    header_list headers;

    explicit written_request(const std::string& text) {
        std::istringstream in(text);
        std::string line;
        std::getline(in, line);
        const auto first = line.find(' ');
        const auto target = line.substr(first + 1, line.rfind(' ') - first - 1);
        method = line.substr(0, first);
        const auto mark = std::min(target.find('?'), target.size());
        path = target.substr(0, mark);
        if (mark < target.size()) query = target.substr(mark + 1);
        while (std::getline(in, line) && !line.empty()) {
            if (line.front() == ' ') {
                headers.back().second.append("\n").append(line);
                continue;
            }
            const auto colon = line.find(':');
            headers.emplace_back(line.substr(0, colon), line.substr(colon + 1));
        }
        body = {std::istreambuf_iterator<char>(in), {}};
    }

    [[nodiscard]] std::string header(const std::string& name) const {
        for (const auto& [each, value] : headers)
            if (each == name) return value;
        return {};
    }
};

struct SignVectors : testing::TestWithParam<std::string> {
    fs::path at = folder / GetParam();
    boost::json::value context = boost::json::parse(content_of(at / "context.json"));
    written_request request{content_of(at / "request.txt")};
    written_request expected{content_of(at / "header-signed-request.txt")};

    [[nodiscard]] std::string text(const boost::json::value& of, const char* name) const {
        const auto* const found = of.as_object().if_contains(name);
        return found == nullptr ? std::string() : boost::json::value_to<std::string>(*found);
    }
    [[nodiscard]] signable what() const {
        return {request.method, request.path, request.query, request.headers, request.body};
    }
};

TEST_P(SignVectors, GivesTheSignatureThatAwsPublished) {
    ASSERT_EQ(text(context, "timestamp"), "2015-08-30T12:36:00Z");
    const wall_time time{std::chrono::seconds{1'440'938'160}};
    const auto& credentials = context.at("credentials");
    const aws_keys keys{
        text(credentials, "access_key_id"),
        text(credentials, "secret_access_key"),
        text(credentials, "token"),
        std::nullopt};
    if (context.at("sign_body").as_bool()) {  // of S3 alone; a header like any other here
        request.headers.emplace_back("x-amz-content-sha256", expected.header("x-amz-content-sha256"));
    }
    const auto added = sign(what(), keys, {text(context, "region"), text(context, "service")}, time);
    for (const auto& [name, value] : added)
        EXPECT_EQ(value, expected.header(name)) << name;
    EXPECT_EQ(added.back().first, "Authorization");
    EXPECT_EQ(added.size(), keys.session_token.empty() ? 2U : 3U);

    request.headers.insert(request.headers.end(), added.begin(), added.end() - 1);
    EXPECT_EQ(canonical_request(what()), content_of(at / "header-canonical-request.txt"));
}

std::vector<std::string> cases() {
    std::vector<std::string> names;
    for (const auto& each : fs::directory_iterator(folder))
        if (each.is_directory()) names.push_back(each.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

TEST(SignVectorsFolder, HoldsAllCasesOfHeadersThatTheSignerClaims) {
    EXPECT_EQ(cases().size(), 30U);
}

INSTANTIATE_TEST_SUITE_P(Aws, SignVectors, testing::ValuesIn(cases()), [](const auto& which) {
    auto name = which.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

}  // namespace
}  // namespace millrace::aws
