#include "local_headers.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

std::string encoded(const std::vector<record_header>& headers) {
    std::string bytes;
    encode_headers(headers, bytes);
    return bytes;
}

TEST(LocalHeaders, StandInTheDocumentedBytes) {
    const std::string expected("\0\0\0\1a\0\0\0\2bc\0\0\0\1d\xff\xff\xff\xff", 20);
    EXPECT_EQ(encoded({{"a", "bc"}, {"d", std::nullopt}}), expected);
    EXPECT_EQ(encoded({}), "");
}

TEST(LocalHeaders, KeepAMissingValueApartFromAnEmptyOne) {
    const std::vector<record_header> headers{
        {"", ""}, {"x", std::nullopt}, {"x", std::string_view("\0\xff", 2)}};
    const auto bytes = encoded(headers);
    EXPECT_EQ(decode_headers(bytes), headers);
    EXPECT_EQ(encoded_size(headers), bytes.size());
}

RC_GTEST_PROP(LocalHeaders, ReadWhatWasWritten, ()) {
    const auto texts = *rc::gen::arbitrary<std::vector<std::pair<std::string, rc::Maybe<std::string>>>>();
    std::vector<record_header> headers;
    for (const auto& [name, value] : texts)
        headers.push_back({name, value ? std::optional<std::string_view>(*value) : std::nullopt});
    const auto bytes = encoded(headers);
    RC_ASSERT(bytes.size() == encoded_size(headers));
    RC_ASSERT(decode_headers(bytes) == headers);
}

TEST(LocalHeaders, AreCorruptWhenCutAnywhereInside) {
    const auto bytes = encoded({{"name", "value"}});
    for (std::size_t size = 1; size < bytes.size(); ++size) {
        const auto read = decode_headers(std::string_view(bytes).substr(0, size));
        ASSERT_FALSE(read) << size;
        EXPECT_EQ(read.error().code, errc::corrupt);
    }
}

}  // namespace
}  // namespace millrace
