/// Where worker threads leave what became of one shard's records, for the loop to pick up.
///
/// Many reports make one wake-up of the loop, and neighbouring acknowledgements become one range. Reports
/// after `close` are dropped, so whoever holds an acknowledger may keep it for ever.
/// Thread contract: `push` from any thread; the rest on the loop.
#pragma once

#include "port/host.hpp"
#include "shard/ack_window.hpp"

#include <millrace/error.hpp>
#include <millrace/handler.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {

class shard_inbox : public std::enable_shared_from_this<shard_inbox> {
public:
    /// By window index, inclusive.
    struct acknowledged {
        ack_window::index first;
        ack_window::index last;
    };
    struct failed {
        ack_window::index which;
        error why;
    };
    /// The call is over.
    struct returned {
        result<handled> how;
    };
    /// The lease was no longer good when the call was to begin.
    struct skipped {};
    using report = std::variant<acknowledged, failed, returned, skipped>;

    /// `wake` is called on the loop when there is something to `take`.
    shard_inbox(host& loop, std::function<void()> wake) : loop_(&loop), wake_(std::move(wake)) {}

    void push(report what);

    /// All reports since the last time, in order.
    [[nodiscard]] std::vector<report> take();

    /// No further wake-up; the host is not touched any more.
    void close();

private:
    std::mutex mutex_;
    host* loop_;  // null once closed
    bool woken_{false};
    std::vector<report> reports_;
    std::function<void()> wake_;  // loop only
};

/// The acknowledger of one call. `places` as in `shard_delivery::hand`.
[[nodiscard]] acknowledger make_acknowledger(
    std::shared_ptr<shard_inbox> inbox,
    std::size_t size,
    ack_window::index first,
    std::shared_ptr<const std::vector<ack_window::index>> places
);

}  // namespace millrace
