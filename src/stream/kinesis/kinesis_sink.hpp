/// Publishes to the streams of Kinesis: `event_sink` over an `aws::api`.
///
/// All rows go to one stream, or each to the one that its topic names. The order per key is kept by
/// `put_queue`: a key has one record under way at a time, so a single key gets on by one record per round
/// trip, while many keys share each call. Main stops at the first failure for all rows behind it that are not
/// on their way; those that are say what became of them. A row that is throttled is tried again here
/// (`kinesis.throttled` in the log when that goes on); a call whose outcome is not known is in doubt, and
/// nothing is sent twice by itself.
///
/// Kinesis has no headers and no tombstones (`put_entry.hpp`). A row's explicit partition is not looked at.
/// Lives on its host and is only touched there. Requests that wait when it ends are `cancelled`.
#pragma once

#include "api.hpp"
#include "kinesis_url.hpp"
#include "port/event_sink.hpp"
#include "put_entry.hpp"
#include "put_queue.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace millrace {

struct kinesis_sink_options {
    kinesis_losses losses;
    put_queue_options calls;
    milliseconds call_timeout{10'000};  ///< Then its outcome is in doubt. A reset may wait so long.
    milliseconds look_timeout{6'000};   ///< Of each request of the first look at a stream.

    std::size_t request_rows_max{1'000};
    std::size_t request_bytes_max{1 << 20};
    std::size_t requests_in_flight_max{64};
};

class kinesis_sink final : public event_sink {
public:
    /// An address without a stream leaves it to the topics. The host must outlive the sink.
    kinesis_sink(
        host& home, kinesis_address to, std::unique_ptr<aws::api> api, kinesis_sink_options options = {}
    );
    ~kinesis_sink() override;

    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override;
    void reset_main(completion<void> done) override;
    [[nodiscard]] std::optional<error> suspect(const outbox_row& row) const override;
    [[nodiscard]] capacity limits() const override;

    /// Whether the stream of the address is there. Where topics name the streams there is nothing to look at,
    /// and where the credentials may only put, it is left to that.
    void look(completion<void> done);

private:
    struct impl;
    std::shared_ptr<impl> impl_;  // weakly held by what is under way
};

}  // namespace millrace
