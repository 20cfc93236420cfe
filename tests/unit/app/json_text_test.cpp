#include "json_text.hpp"

#include "record/bytes_text.hpp"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace millrace::app {
namespace {

TEST(JsonText, ControlCharactersQuotesAndBackslashesAreEscaped) {
    EXPECT_EQ(json_string("a\"b\\c\n\t\x01z"), R"("a\"b\\c\n\t\u0001z")");
    EXPECT_EQ(json_string(std::string_view{"\0", 1}), R"("\u0000")");
    EXPECT_EQ(json_string("\u00e4\u20ac\U0001F600"), "\"\u00e4\u20ac\U0001F600\"");
}

RC_GTEST_PROP(JsonText, AStringReadsBackAsItself, (const std::string& bytes)) {
    std::string text = "\u00e4" + bytes;
    if (!is_utf8(text)) {
        for (char& c : text)
            c = static_cast<char>(c & 0x7F);
    }
    RC_ASSERT(
        boost::json::parse(json_string(text)).as_string() ==
        boost::json::string_view(text.data(), text.size())
    );
}

}  // namespace
}  // namespace millrace::app
