#include "reference.hpp"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::app {
namespace {

TEST(Reference, TheDocumentationHasTheTablesOfTheProgram) {
    std::ifstream in(MILLRACE_SOURCE_DIR "/docs/configuration.md");
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_THAT(text.str(), testing::HasSubstr(config_reference()))
        << "replace the tables by the output of: millrace config reference";
}

TEST(Reference, EveryKeyHasAnExample) {
    EXPECT_THAT(config_reference(), testing::HasSubstr("`lease: 5s`"));
    EXPECT_THAT(config_reference(), testing::Not(testing::HasSubstr(": ` |")));
}

}  // namespace
}  // namespace millrace::app
