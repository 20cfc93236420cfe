#include "logging.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::app {
namespace {

std::string logged(std::string_view format) {
    testing::internal::CaptureStderr();
    make_log("info", format)
        ->write(log_level::warning, "group.failed", {{"error", ""}, {"detail", "no luck"}, {"shard", ""}});
    return testing::internal::GetCapturedStderr();
}

TEST(Logging, EmptyFieldsAreLeftOut) {
    EXPECT_THAT(logged("text"), testing::EndsWith(" warning group.failed detail=\"no luck\"\n"));
    EXPECT_THAT(
        logged("json"),
        testing::EndsWith(R"("level":"warning","event":"group.failed","detail":"no luck"})"
                          "\n")
    );
}

}  // namespace
}  // namespace millrace::app
