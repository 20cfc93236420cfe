/// One PutRecords call and what its reply says of each row. Thread-safe, as `kinesis_calls`.
#pragma once

#include "kinesis_calls.hpp"
#include "kinesis_url.hpp"
#include "put_queue.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace millrace {

struct put_answer {
    std::vector<put_queue::outcome> rows;  ///< One for each row.

    /// The refusal was of the call: it may be for another of its rows.
    bool shared_blame{false};
};

/// Sends the rows of `what`, which must stay as they are until `done` has been told, on the api's thread.
/// `random` makes the keys of rows without one.
void send_put(
    kinesis_calls& calls,
    const kinesis_address& to,
    const std::shared_ptr<const put_queue::call>& what,
    std::uint64_t random,
    milliseconds timeout,
    std::function<void(put_answer)> done
);

}  // namespace millrace
