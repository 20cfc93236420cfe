/// Calls of the handler: the one place where its exceptions are caught.
///
/// `handler_call` is a job of the pool. It holds all that it needs, so that the shard may come and go
/// meanwhile; only the handler must outlive it.
#pragma once

#include "shard_inbox.hpp"

#include <millrace/error.hpp>
#include <millrace/handler.hpp>
#include <millrace/names.hpp>
#include <millrace/record.hpp>

#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace millrace {

/// What `call` returns, a `result`; or `handler_failed`, when it throws.
template <class Call>
[[nodiscard]] auto call_handler_safely(const shard_id& shard, std::string_view function, Call&& call)
    -> decltype(call()) {
    const auto thrown = [&](const char* what) {
        return fail(
            errc::handler_failed,
            fmt::format("`{}` of the handler threw for shard {}: {}", function, shard.value(), what),
            retry_advice::after_delay
        );
    };
    try {
        return std::forward<Call>(call)();
    } catch (const std::exception& e) {
        return thrown(e.what());
    } catch (...) {
        return thrown("something that is not a std::exception");
    }
}

struct handler_call {
    record_handler& handler;
    std::shared_ptr<shard_inbox> inbox;
    std::shared_ptr<const record_batch> batch;
    delivery how;

    void run() {
        if (!how.still_owner()) return inbox->push(shard_inbox::skipped{});
        auto ended =
            call_handler_safely(batch->shard(), "handle", [this] { return handler.handle(batch, how); });
        batch.reset();  // before the loop is told, so that the memory is back when it reads on
        inbox->push(shard_inbox::returned{std::move(ended)});
    }
};

}  // namespace millrace
