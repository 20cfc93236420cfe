/// Publishes to the streams of one local file: `event_sink` on a thread with a connection of its own.
///
/// The topic of a row names its stream, which must exist. Each request is one transaction; when its
/// completion comes without an error, its rows are on the disk. A row's explicit partition is not looked at:
/// the key decides. Lives on its host and is only touched there. Requests that wait when it ends are
/// `cancelled`.
#pragma once

#include "local_append.hpp"
#include "port/event_sink.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

struct local_sink_options {
    milliseconds busy_timeout{2'000};  ///< How long a request waits for other writers before `unavailable`.
    local_limits limits;
    local_clock clock{system_wall_time};

    /// When set, each record gets the header `millrace-outbox` with "EPOCH ID", by which a consumer can
    /// drop what is older.
    std::optional<std::string> outbox;

    std::size_t request_rows_max{2'000};
    std::size_t request_bytes_max{1 << 20};
    std::size_t requests_in_flight_max{3};
};

class local_sink final : public event_sink {
public:
    static constexpr std::string_view outbox_header = "millrace-outbox";

    /// The file is opened for the first request, and anew when it was replaced.
    local_sink(host& home, std::string file, local_sink_options options = {});
    ~local_sink() override;

    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override;
    void reset_main(completion<void> done) override;
    [[nodiscard]] std::optional<error> suspect(const outbox_row& row) const override;
    [[nodiscard]] capacity limits() const override;

    /// Whether the file is there and usable, and, unless `stream` is empty, has that stream.
    void look(completion<void> done, std::string stream = {});

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
