#include "json_schema/checker.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace millrace::schema {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const fs::path suite = "/usr/share/json-schema-test-suite";

std::string content_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The files of the drafts, without what they leave to the implementation (`format`, `content...`) and
/// without `definitions`, which is about the schema of schemas.
std::vector<std::string> files() {
    std::vector<std::string> all{"draft7/optional/bignum.json", "draft7/optional/zeroTerminatedFloats.json"};
    for (const auto* draft : {"draft4", "draft6", "draft7"}) {
        for (const auto& entry : fs::directory_iterator(suite / "tests" / draft)) {
            if (entry.is_regular_file() && entry.path().stem() != "definitions")
                all.push_back(draft / entry.path().filename());
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

struct JsonSchemaSuite : testing::TestWithParam<std::string> {
    std::vector<json_reference> remotes() {
        std::vector<json_reference> all;
        for (const auto* name :
             {"integer.json", "name.json", "subSchemas.json", "folder/folderInteger.json"}) {
            texts.push_back(std::make_unique<std::string>(content_of(suite / "remotes" / name)));
            names.push_back(std::make_unique<std::string>(std::string("http://localhost:1234/") + name));
            all.push_back({*names.back(), *texts.back()});
        }
        return all;
    }

    std::vector<std::unique_ptr<std::string>> texts;
    std::vector<std::unique_ptr<std::string>> names;
};

TEST_P(JsonSchemaSuite, JudgesEveryValueAsTheSuiteDoes) {
    const auto references = remotes();
    const auto groups = json::parse(content_of(suite / "tests" / GetParam())).as_array();
    const bool draft4 = GetParam().starts_with("draft4");
    std::size_t judged = 0;
    for (const auto& group : groups) {
        auto schema_value = group.at("schema");
        if (draft4 && schema_value.is_object()) {
            schema_value.as_object()["$schema"] = "http://json-schema.org/draft-04/schema#";
        }
        const auto text = json::serialize(schema_value);
        // The schema of schemas is not fetched.
        if (text.find(R"("$ref":"http://json-schema.org/draft-)") != std::string::npos) continue;
        const auto schema = parse_json_schema(text, references);
        ASSERT_TRUE(schema) << group.at("description") << ": " << schema.error().detail;
        json_checker checker;
        for (const auto& test : group.at("tests").as_array()) {
            const auto fits = checker.check(*schema, json::serialize(test.at("data")));
            EXPECT_EQ(fits.has_value(), test.at("valid").as_bool())
                << group.at("description") << ", " << test.at("description") << ": "
                << (fits ? "" : fits.error().detail) << "\n"
                << text << "\n"
                << json::serialize(test.at("data"));
            ++judged;
        }
    }
    EXPECT_GE(judged, 1U);
}

INSTANTIATE_TEST_SUITE_P(Drafts, JsonSchemaSuite, testing::ValuesIn(files()), [](const auto& file) {
    std::string name;
    for (const char c : file.param.substr(0, file.param.rfind('.')))
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return name;
});

}  // namespace
}  // namespace millrace::schema
