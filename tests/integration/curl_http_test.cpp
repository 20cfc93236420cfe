#include "curl_http.hpp"

#include "integration/aws_outcome.hpp"
#include "support/raw_http_server.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using support::http_answer;
using support::raw_answer;
using support::raw_http_server;
using support::seen_request;
using testing::HasSubstr;
using testing::Not;
using clock = std::chrono::steady_clock;

/// What comes back for one request, waited for.
result<http_reply> ask(http& by, http_request what) {
    test::outcomes<result<http_reply>> all;
    by.send(std::move(what), all.callback());
    return all.next();
}

http_request get(const std::string& url) {
    return {.url = url};
}
http_request post(const std::string& url, std::string body) {
    return {.method = "POST", .url = url, .body = std::move(body)};
}

raw_answer fine(const seen_request&) {
    return {http_answer(200, "fine")};
}

TEST(CurlHttp, GetsPutsAndPostsAsAsked) {
    seen_request seen;
    raw_http_server server([&](const seen_request& request) {
        seen = request;
        return raw_answer{http_answer(201, "body", "X-Some: thing\r\n")};
    });
    curl_http http;

    auto came = ask(http, {.url = server.url() + "/a?b=c", .headers = {{"X-Own", "value"}, {"X-Empty", ""}}});
    ASSERT_TRUE(came) << came.error().detail;
    EXPECT_EQ(came->status, 201);
    EXPECT_EQ(came->header("x-some"), "thing");
    EXPECT_EQ(came->body, "body");
    EXPECT_EQ(seen.method, "GET");
    EXPECT_EQ(seen.target, "/a?b=c");
    EXPECT_EQ(seen.header("x-own"), "value");
    EXPECT_TRUE(seen.headers.contains("x-empty"));
    EXPECT_FALSE(seen.headers.contains("content-type"));

    came = ask(http, {.method = "PUT", .url = server.url() + "/token"});
    ASSERT_TRUE(came) << came.error().detail;
    EXPECT_EQ(seen.method, "PUT");
    EXPECT_EQ(seen.header("content-length"), "0");
    EXPECT_FALSE(seen.headers.contains("content-type"));

    const std::string large(3'000'000, 'x');
    came = ask(http, post(server.url(), large));
    ASSERT_TRUE(came) << came.error().detail;
    EXPECT_EQ(seen.method, "POST");
    EXPECT_EQ(seen.target, "/");
    EXPECT_EQ(seen.body, large);
    EXPECT_FALSE(seen.headers.contains("expect"));

    came = ask(http, get(server.url()));  // after a POST on the same handle
    EXPECT_EQ(seen.method, "GET");
    EXPECT_FALSE(seen.headers.contains("x-own"));
}

TEST(CurlHttp, KeepsItsConnection) {
    raw_http_server server(fine);
    curl_http http;
    for (int i = 0; i < 50; ++i)
        ASSERT_TRUE(ask(http, i % 2 == 0 ? get(server.url()) : post(server.url(), "x")));
    EXPECT_EQ(server.connections(), 1U);
}

TEST(CurlHttp, KeepsToItsNumberOfConnectionsAndServesAllThatWait) {
    raw_http_server server([](const seen_request&) { return raw_answer{http_answer(200, ""), 5ms}; });
    curl_http http({.connections_max = 3});
    test::outcomes<result<http_reply>> all;
    for (int i = 0; i < 60; ++i)
        http.send(post(server.url(), "x"), all.callback());
    for (const auto& came : all.take(60))
        EXPECT_TRUE(came) << came.error().detail;
    EXPECT_EQ(server.connections_at_once(), 3U);
    EXPECT_EQ(server.connections(), 3U);
}

TEST(CurlHttp, DoesNotFollowARedirect) {
    raw_http_server server([](const seen_request&) {
        return raw_answer{http_answer(302, "", "Location: http://127.0.0.1:1/\r\n")};
    });
    curl_http http;
    const auto came = ask(http, post(server.url(), "x"));
    ASSERT_TRUE(came) << came.error().detail;
    EXPECT_EQ(came->status, 302);
    EXPECT_EQ(server.requests(), 1U);
}

TEST(CurlHttp, IsNotInDoubtWhenNobodyListens) {
    std::string url;
    {
        raw_http_server server(fine);
        url = server.url();
    }
    curl_http http;
    const auto came = ask(http, post(url, "x"));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, errc::unavailable);
    EXPECT_EQ(came.error().retry, retry_advice::after_delay);
    EXPECT_FALSE(came.error().in_doubt);
    EXPECT_THAT(came.error().detail, HasSubstr(url));
}

TEST(CurlHttp, IsNotInDoubtWhenTheNameIsUnknown) {
    curl_http http;
    const auto came = ask(http, post("http://nobody.invalid/", "x"));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, errc::unavailable);
    EXPECT_FALSE(came.error().in_doubt);
}

TEST(CurlHttp, RefusesOtherSchemesAndMalformedAddresses) {
    curl_http http;
    for (const auto* const url : {"file:///etc/passwd", "ftp://127.0.0.1/", "http://", "http://a b/"}) {
        const auto came = ask(http, get(url));
        ASSERT_FALSE(came) << url;
        EXPECT_EQ(came.error().code, errc::invalid_config) << url;
        EXPECT_EQ(came.error().retry, retry_advice::never) << url;
    }
}

// The service may have carried the request out, whatever became of the reply.
TEST(CurlHttp, IsInDoubtWhenTheReplyIsLostCutOrGarbage) {
    for (const std::string& bytes :
         {std::string(),
          std::string("HTTP/1.1 200 OK\r\nContent-Le"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
          std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf"),
          std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n0\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
          std::string("\x00\x01\x02 garbage\r\n\r\n", 15)}) {
        raw_http_server server([&](const seen_request&) { return raw_answer{bytes, 0ms, true}; });
        curl_http http;
        const auto came = ask(http, post(server.url(), "x"));
        ASSERT_FALSE(came) << bytes;
        EXPECT_EQ(came.error().code, errc::unavailable) << bytes << came.error().detail;
        EXPECT_TRUE(came.error().in_doubt) << bytes;
        EXPECT_EQ(server.requests(), 1U) << bytes;
    }
}

// libcurl would send it again by itself when a kept connection is closed without a word.
TEST(CurlHttp, SendsWhatIsNotRepeatableOnceThoughAKeptConnectionEndsWithoutAReply) {
    const auto answer = [](const seen_request& request) {
        if (request.body == "second") return raw_answer{{}, 0ms, true};
        return raw_answer{http_answer(200, "")};
    };
    raw_http_server server(answer);
    curl_http http;
    ASSERT_TRUE(ask(http, post(server.url(), "first")));
    auto once = post(server.url(), "second");
    once.repeatable = false;
    const auto came = ask(http, std::move(once));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, errc::unavailable);
    EXPECT_TRUE(came.error().in_doubt);
    EXPECT_THAT(came.error().detail, HasSubstr("the connection ended after the request had been sent"));
    EXPECT_THAT(came.error().detail, Not(HasSubstr("callback"))) << "what libcurl says of its own insides";
    EXPECT_EQ(server.requests(), 2U);
}

TEST(CurlHttp, SendsARepeatableRequestAgainWhenAKeptConnectionEndsWithoutAReply) {
    raw_http_server server([](const seen_request& request) {
        if (request.number == 2) return raw_answer{{}, 0ms, true};
        return raw_answer{http_answer(200, request.body)};
    });
    curl_http http;
    ASSERT_TRUE(ask(http, post(server.url(), "first")));
    const auto came = ask(http, post(server.url(), "second"));
    ASSERT_TRUE(came) << came.error().detail;
    EXPECT_EQ(came->body, "second");
    EXPECT_EQ(server.requests(), 3U);
}

TEST(CurlHttp, EndsARequestAtItsTimeOut) {
    raw_http_server server([](const seen_request&) { return raw_answer{http_answer(200, ""), 60s}; });
    curl_http http;
    auto what = post(server.url(), "x");
    what.timeout = 200ms;
    const auto began = clock::now();
    const auto came = ask(http, std::move(what));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, errc::unavailable);
    EXPECT_TRUE(came.error().in_doubt);
    EXPECT_GE(clock::now() - began, 200ms);
    EXPECT_LT(clock::now() - began, 10s);
}

TEST(CurlHttp, EndsARequestThatStallsLongBeforeItsTimeOut) {
    raw_http_server server([](const seen_request& request) {
        // The second half never comes: the answer to a next request that is not sent.
        return raw_answer{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf" + request.body.substr(1)};
    });
    curl_http http({.stall_timeout = 1s});
    auto what = post(server.url(), "x");
    what.timeout = 60s;
    const auto began = clock::now();
    const auto came = ask(http, std::move(what));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, errc::unavailable);
    EXPECT_TRUE(came.error().in_doubt);
    EXPECT_LT(clock::now() - began, 20s);
}

/// The limits of unacknowledged data of this process's connections to that port, in milliseconds.
std::vector<unsigned> limits_of_connections_to(std::uint16_t port) {
    std::vector<unsigned> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        const int fd = std::stoi(entry.path().filename().string());
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.sin_family != AF_INET ||
            ntohs(peer.sin_port) != port)
            continue;
        unsigned limit = 0;
        size = sizeof limit;
        if (::getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, &size) == 0) found.push_back(limit);
    }
    return found;
}

TEST(CurlHttp, EndsAConnectionWhoseOtherEndIsGoneWithoutAWord) {
    raw_http_server server(fine);
    curl_http http({.stall_timeout = 3s});
    ASSERT_TRUE(ask(http, get(server.url())));
    const auto port = static_cast<std::uint16_t>(std::stoi(server.url().substr(server.url().rfind(':') + 1)));
    EXPECT_THAT(limits_of_connections_to(port), testing::ElementsAre(6'000U));
}

TEST(CurlHttp, WaitsForTheReplyToWhatMustNotBeSentTwiceUntilItsTimeOut) {
    raw_http_server server([](const seen_request&) { return raw_answer{http_answer(200, "late"), 1500ms}; });
    curl_http http({.stall_timeout = 200ms});
    EXPECT_FALSE(ask(http, post(server.url(), "x")));
    auto what = post(server.url(), "x");
    what.repeatable = false;
    const auto came = ask(http, what);
    ASSERT_TRUE(came) << came.error().detail;
    EXPECT_EQ(came->body, "late");
    what.timeout = 300ms;
    const auto too_late = ask(http, std::move(what));
    ASSERT_FALSE(too_late);
    EXPECT_TRUE(too_late.error().in_doubt);
}

TEST(CurlHttp, IsNotInDoubtWhenNoConnectionBecomesFreeInTime) {
    raw_http_server server([](const seen_request&) { return raw_answer{http_answer(200, ""), 60s}; });
    curl_http http({.connections_max = 1});
    test::outcomes<result<http_reply>> first;
    http.send(post(server.url(), "x"), first.callback());
    auto what = post(server.url(), "y");
    what.timeout = 100ms;
    const auto came = ask(http, std::move(what));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, errc::unavailable);
    EXPECT_FALSE(came.error().in_doubt);
    EXPECT_EQ(first.count(), 0U);
}

TEST(CurlHttp, LimitsTheBytesOfAReply) {
    const std::string large(2'000, 'x');
    for (const auto& bytes :
         {http_answer(200, large),
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + large + "\r\n0\r\n\r\n",
          "HTTP/1.1 200 OK\r\n\r\n" + large}) {
        raw_http_server server([&](const seen_request&) { return raw_answer{bytes, 0ms, true}; });
        curl_http small({.reply_bytes_max = 1'999});
        const auto refused = ask(small, post(server.url(), "x"));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, errc::corrupt);
        EXPECT_TRUE(refused.error().in_doubt);
        EXPECT_THAT(refused.error().detail, HasSubstr("longer than 1999 bytes"));
        curl_http enough({.reply_bytes_max = 2'000});
        const auto taken = ask(enough, post(server.url(), "x"));
        ASSERT_TRUE(taken) << taken.error().detail;
        EXPECT_EQ(taken->body, large);
    }
}

TEST(CurlHttp, LimitsTheBytesOfAReplysHead) {
    raw_http_server server([](const seen_request&) {
        std::string lines;
        for (int i = 0; i < 2'000; ++i)
            lines += "X-Long-" + std::to_string(i) + ": " + std::string(60, 'x') + "\r\n";
        return raw_answer{http_answer(200, "", lines)};
    });
    curl_http http;
    const auto came = ask(http, get(server.url()));
    ASSERT_FALSE(came);
    EXPECT_EQ(came.error().code, errc::corrupt);
}

TEST(CurlHttp, TakesTheHeadOfTheFinalReplyOnly) {
    raw_http_server server([](const seen_request&) {
        return raw_answer{
            "HTTP/1.1 103 Early\r\nX-A: early\r\n\r\n" + http_answer(200, "b", "X-B: final\r\n")};
    });
    curl_http http;
    const auto came = ask(http, get(server.url()));
    ASSERT_TRUE(came) << came.error().detail;
    EXPECT_EQ(came->status, 200);
    EXPECT_EQ(came->header("X-A"), "");
    EXPECT_EQ(came->header("X-B"), "final");
}

TEST(CurlHttp, RefusesMoreRequestsThanMayWait) {
    raw_http_server server([](const seen_request&) { return raw_answer{http_answer(200, ""), 60s}; });
    test::outcomes<result<http_reply>> all;
    {
        curl_http http({.connections_max = 1, .requests_max = 2});
        for (int i = 0; i < 3; ++i)
            http.send(post(server.url(), "x"), all.callback());
        const auto refused = all.next();
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, errc::throttled);
        EXPECT_FALSE(refused.error().in_doubt);
        EXPECT_EQ(all.count(), 0U);
    }
    EXPECT_EQ(all.count(), 2U);
}

TEST(CurlHttp, EndsPromptlyAndTellsWhichRequestsMayHaveTakenEffect) {
    std::promise<void> received;
    raw_http_server server([&](const seen_request&) {
        received.set_value();
        return raw_answer{http_answer(200, ""), 60s};
    });
    test::outcomes<result<http_reply>> sent;
    test::outcomes<result<http_reply>> waiting;
    const auto began = clock::now();
    {
        curl_http http({.connections_max = 1});
        http.send(post(server.url(), "x"), sent.callback());
        http.send(post(server.url(), "y"), waiting.callback());
        received.get_future().wait();
    }
    EXPECT_LT(clock::now() - began, 10s);
    const auto of_sent = sent.next();
    ASSERT_FALSE(of_sent);
    EXPECT_EQ(of_sent.error().code, errc::cancelled);
    EXPECT_TRUE(of_sent.error().in_doubt);
    const auto of_waiting = waiting.next();
    ASSERT_FALSE(of_waiting);
    EXPECT_EQ(of_waiting.error().code, errc::cancelled);
    EXPECT_FALSE(of_waiting.error().in_doubt);
}

TEST(CurlHttp, DoesNotWaitForAResolverWhenItEnds) {
    test::outcomes<result<http_reply>> all;
    const auto began = clock::now();
    {
        curl_http http;
        http.send(post("http://slow.nobody.invalid/", "x"), all.callback());
    }
    EXPECT_LT(clock::now() - began, 5s);
    ASSERT_FALSE(all.next());
}

TEST(CurlHttp, MaySendAgainFromAnOutcome) {
    raw_http_server server(fine);
    test::outcomes<result<http_reply>> all;
    curl_http http;
    http.send(get(server.url()), [&](const result<http_reply>&) {
        http.send(get(server.url()), all.callback());
    });
    EXPECT_TRUE(all.next());
    EXPECT_EQ(server.requests(), 2U);
}

TEST(CurlHttp, CallsAfterAPauseInOrderAndNotAfterItsEnd) {
    test::outcomes<int> all;
    bool called = false;
    {
        curl_http http;
        http.call_after(30ms, [done = all.callback()] { done(2); });
        http.call_after(0ms, [done = all.callback()] { done(1); });
        EXPECT_EQ(all.take(2), (std::vector{1, 2}));
        http.call_after(60s, [&] { called = true; });
    }
    EXPECT_FALSE(called);
}

/// Sets a variable of the environment while it lives.
struct variable {
    variable(const char* n, const std::string& value) : name(n) { ::setenv(n, value.c_str(), 1); }
    ~variable() { ::unsetenv(name); }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;
    const char* name;
};

TEST(CurlHttp, TakesTheProxyOfTheEnvironmentUnlessItMustNot) {
    std::string target;
    raw_http_server proxy([&](const seen_request& request) {
        target = request.target;
        return raw_answer{http_answer(200, "")};
    });
    const variable set("http_proxy", proxy.url());
    curl_http http;
    const auto came = ask(http, get("http://nobody.invalid/a"));
    ASSERT_TRUE(came) << came.error().detail;
    EXPECT_EQ(target, "http://nobody.invalid/a");
    auto direct = get("http://nobody.invalid/a");
    direct.proxy = false;
    EXPECT_FALSE(ask(http, std::move(direct)));
    EXPECT_EQ(proxy.requests(), 1U);
    EXPECT_TRUE(ask(http, get("http://nobody.invalid/a")));  // the handle is used again
}

}  // namespace
}  // namespace millrace
