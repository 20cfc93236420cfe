/// One call of the handler, as a job of the pool: the one place where its exceptions are caught.
///
/// Holds all that it needs, so that the shard may come and go meanwhile; only the handler must outlive it.
#pragma once

#include "shard_inbox.hpp"

#include <millrace/error.hpp>
#include <millrace/handler.hpp>
#include <millrace/record.hpp>

#include <exception>
#include <memory>
#include <utility>

#include <fmt/core.h>

namespace millrace {

struct handler_call {
    record_handler& handler;
    std::shared_ptr<shard_inbox> inbox;
    std::shared_ptr<const record_batch> batch;
    delivery how;

    [[nodiscard]] result<handled> handle() const {
        const auto thrown = [&](const char* what) {
            return fail(
                errc::handler_failed,
                fmt::format("the handler threw for shard {}: {}", batch->shard().value(), what),
                retry_advice::after_delay
            );
        };
        try {
            return handler.handle(batch, how);
        } catch (const std::exception& e) {
            return thrown(e.what());
        } catch (...) {
            return thrown("something that is not a std::exception");
        }
    }

    void run() {
        if (!how.still_owner()) return inbox->push(shard_inbox::skipped{});
        auto ended = handle();
        batch.reset();  // before the loop is told, so that the memory is back when it reads on
        inbox->push(shard_inbox::returned{std::move(ended)});
    }
};

}  // namespace millrace
