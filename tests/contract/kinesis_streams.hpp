/// Streams of Kinesis for tests: each has a name of its own on the shared server, or an account of its own.
#pragma once

#include "client.hpp"
#include "keys.hpp"
#include "kinesis_admin.hpp"
#include "kinesis_url.hpp"
#include "support/services.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace millrace::test {

inline std::unique_ptr<aws::api> kinesis_api(
    const std::string& endpoint,
    const std::string& account = "test",
    milliseconds stall_timeout = aws::client_options{}.stall_timeout
) {
    return std::make_unique<aws::client>(
        aws::client_options{
            .service = "kinesis",
            .region = "eu-west-1",
            .endpoint = endpoint,
            .stall_timeout = stall_timeout},
        std::make_shared<aws::fixed_keys>(aws::aws_keys{account, "test", {}, {}})
    );
}

/// A stream that is made for a test and removed behind it.
class kinesis_test_stream {
public:
    explicit kinesis_test_stream(
        std::uint32_t shards, const std::string& name = support::unique_name("kinesis")
    )
        : address{.region = "eu-west-1", .stream = name, .endpoint = support::services().kinesis_endpoint} {
        const auto made = admin.create(shards);
        EXPECT_TRUE(made) << made.error().detail;
    }
    ~kinesis_test_stream() { EXPECT_TRUE(admin.remove()); }
    kinesis_test_stream(const kinesis_test_stream&) = delete;
    kinesis_test_stream& operator=(const kinesis_test_stream&) = delete;

    const kinesis_address address;
    kinesis_admin admin{address, kinesis_api(address.endpoint), milliseconds{10'000}};
};

}  // namespace millrace::test
