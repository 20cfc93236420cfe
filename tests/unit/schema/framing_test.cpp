#include "framing/framing.hpp"

#include "avro_fixture.hpp"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace millrace::schema {
namespace {

std::string message(std::vector<std::int32_t> place) {
    std::string out;
    append_message_index(out, place);
    return hex(out);
}

TEST(SchemaFraming, PutsAZeroAndTheIdBeforeTheValue) {
    std::string out = "x";
    append_schema_id(out, 1);
    EXPECT_EQ(hex(out), "780000000001");
    out.clear();
    append_schema_id(out, 0x01ABCDEF);
    EXPECT_EQ(hex(out), "0001abcdef");
}

TEST(SchemaFraming, ShortensTheFirstMessageToOneZero) {
    EXPECT_EQ(message({0}), "00");
    EXPECT_EQ(message({1}), "0202");
    EXPECT_EQ(message({0, 0}), "040000");
    EXPECT_EQ(message({1, 0, 70}), "0602008c01");
}

TEST(SchemaFraming, PutsTheGuidIntoAHeader) {
    const auto guid = read_guid("89791762-2336-4186-9674-299b90a802e2");
    ASSERT_TRUE(guid);
    EXPECT_EQ(
        hex(guid_header(*guid)),
        "018979176223364186"
        "9674299b90a802e2"
    );
    const auto none = read_guid("89791762-2336-4186-9674-299b90a802eg");
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().detail, testing::HasSubstr("is no GUID of a schema"));
}

TEST(SchemaFraming, ReadsThePlaceOfAMessage) {
    EXPECT_EQ(read_message_index("0"), std::vector<std::int32_t>{0});
    EXPECT_EQ(read_message_index("1/0/12"), (std::vector<std::int32_t>{1, 0, 12}));
    for (const auto* text :
         {"", "/", "1/", "-1", "1/x", "99999999999", "0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0"}) {
        EXPECT_FALSE(read_message_index(text)) << text;
    }
}

}  // namespace
}  // namespace millrace::schema
