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

TEST(Logging, AFieldHoldsTheWordsOfARegistryAndIsCutBehindThem) {
    const auto detail_of = [](std::size_t bytes) {
        testing::internal::CaptureStderr();
        make_log("info", "text")
            ->write(log_level::warning, "relay.row_retried", {{"detail", std::string(bytes, 'x')}});
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_THAT(detail_of(1'500), testing::EndsWith(" detail=" + std::string(1'500, 'x') + "\n"));
    EXPECT_THAT(detail_of(1'501), testing::EndsWith(" detail=" + std::string(1'500, 'x') + "...\n"));
}

}  // namespace
}  // namespace millrace::app
