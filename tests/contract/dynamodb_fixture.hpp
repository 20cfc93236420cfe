/// A table of a test's own, on dynalite or on moto, reached directly or by a detour.
#pragma once

#include "client.hpp"
#include "dynamodb/requests.hpp"
#include "dynamodb_lease_store.hpp"
#include "keys.hpp"
#include "support/services.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace millrace::test {

/// Any keys will do for these servers.
inline std::unique_ptr<aws::api> dynamodb_client(const std::string& endpoint) {
    aws::client_options options;
    options.service = "dynamodb";
    options.region = "us-east-1";
    options.endpoint = endpoint;
    return std::make_unique<aws::client>(
        std::move(options),
        std::make_shared<aws::fixed_keys>(aws::aws_keys{"123456789012", "secret", "", std::nullopt})
    );
}

inline dynamodb_lease_store_options dynamodb_options(
    const std::string& table, const std::string& endpoint, group_key group = {"s", "g"}
) {
    return {
        .where = {table, "us-east-1", endpoint, "table \"" + table + "\""},
        .group = std::move(group),
        .request_timeout = std::chrono::seconds{10},
        .table_timeout = std::chrono::seconds{60}};
}

/// One request, waited for.
inline tl::expected<aws::api_reply, aws::api_failure> dynamodb_call(
    aws::api& by, std::string_view operation, std::string body
) {
    std::promise<tl::expected<aws::api_reply, aws::api_failure>> answer;
    by.send(
        {aws::dynamodb::target_of(operation), aws::dynamodb::content_type, std::move(body)},
        [&answer](auto reply) { answer.set_value(std::move(reply)); }
    );
    return answer.get_future().get();
}

}  // namespace millrace::test
