#include "local_url.hpp"

#include <string>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(LocalUrl, NamesTheFileAndThenTheStream) {
    EXPECT_EQ(parse_local_stream("local:a.db/orders"), (local_address{"a.db", "orders"}));
    EXPECT_EQ(
        parse_local_stream("local:/x/y z/a.db/orders.v-2"), (local_address{"/x/y z/a.db", "orders.v-2"})
    );
    EXPECT_EQ(parse_local_file("local:/x/a.db"), "/x/a.db");
}

TEST(LocalUrl, SaysWhatIsMissingAndHowItShouldLook) {
    for (const auto* url :
         {"local:", "local:a.db", "local:/orders", "local:a.db/", "sqlite:a.db/x", "local:a.db/a b"}) {
        const auto parsed = parse_local_stream(url);
        ASSERT_FALSE(parsed) << url;
        EXPECT_EQ(parsed.error().code, errc::invalid_argument);
        EXPECT_NE(parsed.error().detail.find('"' + std::string(url) + '"'), std::string::npos) << url;
    }
    for (const auto* url : {"local:", "local:dir/", "kafka:x"})
        EXPECT_FALSE(parse_local_file(url)) << url;
}

TEST(LocalUrl, LimitsTheNamesOfStreams) {
    EXPECT_TRUE(check_stream_name(std::string(249, 'a')));
    for (const auto& name :
         {std::string(250, 'a'), std::string(), std::string("."), std::string(".."), std::string("a/b")})
        EXPECT_FALSE(check_stream_name(name)) << name;
}

}  // namespace
}  // namespace millrace
