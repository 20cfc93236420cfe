/// One producer of librdkafka with its queue of reports.
///
/// Payloads are not copied: the caller keeps a row's batch until the row is reported. Every row that was
/// taken is reported exactly once while the producer lives; destroying it drops the reports that are left.
/// Belongs to one thread.
#pragma once

#include "handles.hpp"
#include "port/outbox_source.hpp"

#include <millrace/error.hpp>
#include <millrace/log.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::kafka {

/// Names a row that was handed over, in its report.
struct row_tag {
    std::uint32_t request;
    std::uint32_t place;
};

struct extra_header {
    std::string_view name;
    std::string_view value;
};

class producer {
public:
    /// `conf` is used up. `wake`: an eventfd that is written to when reports come.
    [[nodiscard]] static result<std::unique_ptr<producer>> create(
        conf_ptr conf, int wake, log_sink& log, std::string_view servers
    );
    ~producer();
    producer(const producer&) = delete;
    producer& operator=(const producer&) = delete;

    /// A handle with `opaque`, to be given back before the producer ends. Asks a broker for the topic's
    /// leaders and waits for the answer a short time.
    [[nodiscard]] topic_ptr topic(const std::string& name, void* opaque);

    [[nodiscard]] rd_kafka_resp_err_t hand_over(
        rd_kafka_topic_t* topic,
        std::int32_t partition,
        const outbox_row& row,
        row_tag tag,
        const std::optional<extra_header>& extra
    );

    /// Takes the next event without waiting; null when there is none.
    [[nodiscard]] event_ptr next_event();

    void purge(int flags);

    /// Why the producer can send nothing any more, when that is so.
    [[nodiscard]] rd_kafka_resp_err_t fatal() const;

    /// The handle, for whoever is to destroy it; the producer must not be used afterwards.
    [[nodiscard]] client_ptr release();

    [[nodiscard]] static row_tag tag_of(const rd_kafka_message_t& message) noexcept;

private:
    producer(client_ptr client, int wake);

    [[nodiscard]] rd_kafka_resp_err_t hand_over_in_full(
        rd_kafka_topic_t* topic,
        std::int32_t partition,
        const outbox_row& row,
        void* tag,
        const std::optional<extra_header>& extra
    );

    client_ptr client_;
    queue_ptr events_;
};

/// Makes a client that logs to `log` (at level debug) and reports by events. It is destroyed with its last
/// owner.
[[nodiscard]] result<client_ptr> make_producer_client(
    conf_ptr conf, int events, log_sink& log, std::string_view servers
);

}  // namespace millrace::kafka
