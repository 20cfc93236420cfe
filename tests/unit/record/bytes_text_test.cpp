#include "record/bytes_text.hpp"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace {
namespace {

TEST(Base64, MatchesTheVectorsOfItsRfc) {
    for (const auto& [bytes, text] :
         {std::pair("", ""), {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foobar", "Zm9vYmFy"}}) {
        EXPECT_EQ(to_base64(bytes), text);
        EXPECT_EQ(from_base64(text), bytes);
    }
    EXPECT_EQ(to_base64(std::string("\xff\xfe\x00", 3)), "//4A");
}

TEST(Base64, RefusesWhatIsNotStrict) {
    for (const auto* text :
         {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Zh==", "Zm9=", "Z g=", "Zm9v\n", "Zg==Zg==", "_-__"}) {
        EXPECT_EQ(from_base64(text), std::nullopt) << text;
    }
}

RC_GTEST_PROP(Base64, GivesBackAnyBytes, (const std::string& bytes)) {
    RC_ASSERT(from_base64(to_base64(bytes)) == bytes);
}

TEST(Utf8, TellsTextFromBytes) {
    for (const auto* text : {"", "a", "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_TRUE(is_utf8(text)) << text;
    }
    EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
    for (const auto* bytes :
         {"\x80",
          "\xc3",
          "\xc0\xaf",
          "\xe0\x80\xaf",
          "\xed\xa0\x80",
          "\xf4\x90\x80\x80",
          "\xff",
          "a\xe2\x82",
          "\xc3\x28",
          "\xf5\x80\x80\x80"}) {
        EXPECT_FALSE(is_utf8(bytes));
    }
}

}  // namespace
}  // namespace millrace
