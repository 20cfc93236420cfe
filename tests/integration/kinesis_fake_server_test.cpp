// The stand-in of the Kinesis API as a client meets it: its bytes, its time, its faults.

#include "support/kinesis_fake/server.hpp"
#include "support/kinesis_fake/wire.hpp"

#include <chrono>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/crc.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace millrace::kinesis_fake {
namespace {

namespace asio = boost::asio;

struct reply {
    int status{0};
    std::string head;
    std::string body;
    bool whole{false};
    [[nodiscard]] std::string header(const std::string& name) const {
        const auto from = head.find("\r\n" + name + ": ");
        if (from == std::string::npos) return {};
        const auto begin = from + name.size() + 4;
        return head.substr(begin, head.find("\r\n", begin) - begin);
    }
    [[nodiscard]] bool sum_fits() const {
        boost::crc_32_type sum;
        sum.process_bytes(body.data(), body.size());
        return header("x-amz-crc32") == std::to_string(sum.checksum());
    }
};

/// With a signature whose form alone is right.
std::string request(
    const std::string& operation, const std::string& body, milliseconds skew, const std::string& type
) {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + skew);
    return fmt::format(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: {3}\r\nX-Amz-Target: Kinesis_20131202.{0}\r\n"
        "X-Amz-Date: {1:%Y%m%dT%H%M%SZ}\r\nAuthorization: AWS4-HMAC-SHA256 "
        "Credential=A/{1:%Y%m%d}/us-east-1/kinesis/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, "
        "Signature=00\r\nConnection: close\r\nContent-Length: {2}\r\n\r\n{4}",
        operation,
        fmt::gmtime(now),
        body.size(),
        type,
        body
    );
}

struct wire {
    explicit wire(const server& to) { socket.connect({asio::ip::address_v4::loopback(), to.port()}); }
    asio::io_context context;
    asio::ip::tcp::socket socket{context};
};

constexpr auto json_type = "application/x-amz-json-1.1";

/// One connection a request.
reply post(
    const server& to,
    const std::string& operation,
    const std::string& body,
    milliseconds skew = 0ms,
    const std::string& type = json_type
) {
    wire with(to);
    asio::write(with.socket, asio::buffer(request(operation, body, skew, type)));
    std::string all;
    boost::system::error_code ended;
    asio::read(with.socket, asio::dynamic_buffer(all), ended);
    const auto split = all.find("\r\n\r\n");
    if (split == std::string::npos) return {};
    reply made{std::stoi(all.substr(9, 3)), all.substr(0, split + 2), all.substr(split + 4), false};
    made.whole = made.header("Content-Length") == std::to_string(made.body.size());
    return made;
}

struct KinesisFakeServer : testing::Test {
    server fake{{.secret = ""}};
    void SetUp() override {
        fake.with([](server::inside in) { ASSERT_TRUE(in.model.create("orders", 1)); });
    }
    static inline const std::string list = R"({"StreamName":"orders"})";
};

TEST_F(KinesisFakeServer, AnswersInTheFormThatWasAskedFor) {
    const auto json = post(fake, "ListShards", list);
    EXPECT_EQ(json.status, 200);
    EXPECT_TRUE(json.whole && json.sum_fits()) << json.head;
    EXPECT_TRUE(decode(wire_form::json, json.body));
    EXPECT_EQ(json.header("Content-Type"), "application/x-amz-json-1.1");

    const auto as_cbor =
        encode(wire_form::cbor, value{value_map{{"StreamName", value{std::string("orders")}}}});
    const auto cbor = post(fake, "ListShards", as_cbor, 0ms, "application/x-amz-cbor-1.1");
    EXPECT_EQ(cbor.status, 200);
    EXPECT_EQ(decode(wire_form::cbor, cbor.body), decode(wire_form::json, json.body));
    EXPECT_EQ(fake.requests("ListShards"), 2U);

    server only_json{{.speaks_cbor = false, .secret = ""}};
    EXPECT_EQ(post(only_json, "ListShards", as_cbor, 0ms, "application/x-amz-cbor-1.1").status, 404);
}

TEST_F(KinesisFakeServer, ChecksSignaturesByItsOwnClock) {
    EXPECT_EQ(post(fake, "ListShards", list, -6min).status, 400);
    fake.shift_clock(-6min);
    EXPECT_EQ(post(fake, "ListShards", list, -6min).status, 200);
    const auto refused = post(fake, "ListShards", list);
    EXPECT_NE(refused.body.find("Signature not yet current"), std::string::npos) << refused.body;
    const server strict;
    EXPECT_EQ(post(strict, "ListShards", list).status, 400);
}

TEST_F(KinesisFakeServer, SpoilsRepliesAsTold) {
    const auto with = [&](fault what) {
        fake.with([&](server::inside in) { in.faults.add({.what = what, .times = 1}); });
        return post(fake, "ListShards", list);
    };
    EXPECT_FALSE(with(fault::cut).whole);
    EXPECT_EQ(with(fault::silent).status, 0);
    const auto garbled = with(fault::garbled);
    EXPECT_TRUE(garbled.whole && garbled.sum_fits());
    EXPECT_FALSE(decode(wire_form::json, garbled.body));
    const auto wrong = with(fault::wrong_checksum);
    EXPECT_TRUE(wrong.whole);
    EXPECT_FALSE(wrong.sum_fits());
    EXPECT_EQ(with(fault::overloaded).status, 503);
    EXPECT_EQ(with(fault::throttled).status, 400);
    EXPECT_EQ(post(fake, "ListShards", list).status, 200);
    EXPECT_EQ(fake.faults_drawn(), 6U);
}

TEST_F(KinesisFakeServer, AnswersOthersWhileAReplyIsSlow) {
    fake.with([](server::inside in) { in.faults.add({.what = fault::slow, .times = 1, .delay = 10min}); });
    wire waits(fake);
    asio::write(waits.socket, asio::buffer(request("ListShards", list, 0ms, json_type)));
    while (fake.requests("ListShards") == 0)
        std::this_thread::yield();
    EXPECT_EQ(post(fake, "DescribeStreamSummary", list).status, 200);
}

TEST(KinesisFakeServers, StandBesideEachOther) {
    server one{{.secret = ""}};
    server other{{.clock_skew = 5min, .secret = ""}};
    EXPECT_NE(one.port(), other.port());
    one.with([](server::inside in) { ASSERT_TRUE(in.model.create("orders", 1)); });
    EXPECT_EQ(post(one, "ListShards", KinesisFakeServer::list).status, 200);
    EXPECT_EQ(post(other, "ListShards", KinesisFakeServer::list, 5min).status, 400);
}

}  // namespace
}  // namespace millrace::kinesis_fake
