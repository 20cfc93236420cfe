/// Waits for a request of a port: it must complete exactly once, and not inside the call.
#pragma once

#include "port/host.hpp"

#include <millrace/error.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace millrace::test {

/// `run_until` turns the world in which the request lives until a condition holds, or gives up.
template <class T, class Request, class RunUntil>
result<T> await_once(Request&& request, RunUntil&& run_until) {
    auto outcome = std::make_shared<std::optional<result<T>>>();
    request(completion<T>([outcome](result<T> r) {
        EXPECT_FALSE(outcome->has_value()) << "completed twice";
        outcome->emplace(std::move(r));
    }));
    EXPECT_FALSE(outcome->has_value()) << "completed inside the call";
    if (!run_until(std::function<bool()>([&] { return outcome->has_value(); }))) {
        return fail(errc::internal, "the request did not complete within the limit of the test");
    }
    return std::move(**outcome);
}

}  // namespace millrace::test
