/// The handles of librdkafka, each with an owner that gives it back.
///
/// Destroying a client blocks until its threads have ended and drops what it still holds without a report.
#pragma once

#include <memory>

#include <librdkafka/rdkafka.h>

namespace millrace::kafka {

template <auto Destroy>
struct destroyer {
    template <class T>
    void operator()(T* handle) const noexcept {
        Destroy(handle);
    }
};

using conf_ptr = std::unique_ptr<rd_kafka_conf_t, destroyer<rd_kafka_conf_destroy>>;
using topic_conf_ptr = std::unique_ptr<rd_kafka_topic_conf_t, destroyer<rd_kafka_topic_conf_destroy>>;
using topic_ptr = std::unique_ptr<rd_kafka_topic_t, destroyer<rd_kafka_topic_destroy>>;
using queue_ptr = std::unique_ptr<rd_kafka_queue_t, destroyer<rd_kafka_queue_destroy>>;
using event_ptr = std::unique_ptr<rd_kafka_event_t, destroyer<rd_kafka_event_destroy>>;
using headers_ptr = std::unique_ptr<rd_kafka_headers_t, destroyer<rd_kafka_headers_destroy>>;

/// Shared, because a look-up on a thread of its own may outlast the producer that asked for it.
using client_ptr = std::shared_ptr<rd_kafka_t>;

}  // namespace millrace::kafka
