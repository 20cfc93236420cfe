/// A client of AWS and the server that it talks to, for tests that give the server's answers.
#pragma once

#include "client.hpp"
#include "integration/aws_outcome.hpp"
#include "signing/sign.hpp"
#include "support/raw_http_server.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::aws::client_test {

using namespace std::chrono_literals;
using support::http_answer;
using support::raw_answer;
using support::raw_http_server;
using support::seen_request;
using api_outcome = tl::expected<api_reply, api_failure>;

inline const aws_keys right_keys{"AKIDRIGHT", "the-right-secret", "", std::nullopt};

/// As in the header Date.
inline std::string date_text(wall_time at) {
    const auto seconds = std::chrono::system_clock::to_time_t(at);
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    char text[64];
    const auto size = std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return {text, size};
}

inline wall_time now() {
    return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
}

inline wall_time time_of(const seen_request& request) {
    std::tm parts{};
    ::strptime(request.header("x-amz-date").c_str(), "%Y%m%dT%H%M%SZ", &parts);
    return wall_time(std::chrono::seconds(::timegm(&parts)));
}

/// Whether a service that knows the secret would take the request.
inline bool is_signed_with(const seen_request& request, const aws_keys& keys) {
    const auto given = request.header("authorization");
    const auto begin = given.find("SignedHeaders=") + 14;
    std::istringstream names(given.substr(begin, given.find(',', begin) - begin));
    header_list headers;
    for (std::string name; std::getline(names, name, ';');) {
        if (name == "x-amz-date" || name == "x-amz-security-token") continue;
        headers.emplace_back(name, request.header(name));
    }
    const auto expected = sign(
        {request.method, "/", "", headers, request.body}, keys, {"eu-west-1", "kinesis"}, time_of(request)
    );
    return expected.back().second == given;
}

inline raw_answer refuse(
    int status, const std::string& type, const std::string& message = "m", std::string headers = {}
) {
    return {http_answer(
        status,
        R"({"__type":"com.amazonaws.kinesis.v20131202#)" + type + R"(","message":")" + message + "\"}",
        headers + "Content-Type: application/x-amz-json-1.1\r\n"
    )};
}

inline raw_answer good(const std::string& body = "{}") {
    return {http_answer(200, body, "Content-Type: application/x-amz-json-1.1\r\n")};
}

inline api_request read_request(std::string body = "{}") {
    return {
        .operation = "Kinesis_20131202.GetRecords",
        .content_type = "application/x-amz-json-1.1",
        .body = std::move(body)};
}
inline api_request write_request() {
    auto what = read_request();
    what.operation = "Kinesis_20131202.PutRecords";
    what.repeatable = false;
    return what;
}

inline client_options options_for(const std::string& url) {
    return {
        .service = "kinesis",
        .region = "eu-west-1",
        .endpoint = url,
        .throttled_pause = 5ms,
        .transient_pause = 1ms,
        .pause_max = 10ms};
}

/// A client of a server whose n-th answer is the n-th of a list, then the last one again.
struct AwsClient : testing::Test {
    void serve(std::vector<raw_answer> answers) {
        serve_by([answers = std::move(answers)](const seen_request& request) {
            return answers[std::min(request.number, answers.size()) - 1];
        });
    }
    void serve_by(raw_http_server::handler answer) {
        server = std::make_unique<raw_http_server>(std::move(answer));
        use(std::make_shared<fixed_keys>(right_keys));
    }
    void use(std::shared_ptr<key_source> keys) {
        sut = std::make_unique<client>(options_for(server->url()), std::move(keys));
    }
    api_outcome ask(api_request what) const {
        test::outcomes<api_outcome> all;
        sut->send(std::move(what), all.callback());
        return all.next();
    }

    std::unique_ptr<raw_http_server> server;
    std::unique_ptr<client> sut;
};

}  // namespace millrace::aws::client_test
