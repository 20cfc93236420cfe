#include "avro/encoder.hpp"

#include <gtest/gtest.h>
TEST(X, Y) {
    using namespace millrace::schema;
    auto s = parse_avro_schema(R"({"type":"record","name":"R","fields":[{"name":"a","type":"int"}]})");
    ASSERT_TRUE(s) << s.error().detail;
    std::string out;
    avro_encoder e;
    auto r = e.encode(*s, R"({"a": 5})", out);
    EXPECT_TRUE(r) << r.error().detail;
}
