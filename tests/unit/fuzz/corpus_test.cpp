#include "fuzz/targets.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace millrace::fuzz {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Corpus : testing::TestWithParam<target> {};

TEST_P(Corpus, HoldsItsPropertyForEachInputAndEachOfItsBeginnings) {
    const auto folder = fs::path(MILLRACE_SOURCE_DIR "/tests/fuzz/corpus") / GetParam().name;
    std::size_t inputs = 0;
    for (const auto& file : fs::directory_iterator(folder)) {
        const auto input = content_of(file);
        for (std::size_t size = 0; size <= input.size(); ++size) {
            EXPECT_NO_THROW(GetParam().run(std::string_view(input).substr(0, size)))
                << file.path().filename() << ", the first " << size << " bytes";
        }
        ++inputs;
    }
    EXPECT_GE(inputs, 3U);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(targets), [](const auto& which) {
    return std::string(which.param.name);
});

}  // namespace
}  // namespace millrace::fuzz
