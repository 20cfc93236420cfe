/// What the two channels of a Kafka sink share: requests under way, topics, and the way back to the host.
///
/// All belongs to the sink's thread, except where said.
#pragma once

#include "kafka_error.hpp"
#include "kafka_sink.hpp"
#include "partition_gate.hpp"
#include "partitioner.hpp"
#include "port/event_sink.hpp"
#include "producer.hpp"
#include "topic_facts.hpp"
#include "topic_lookup.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::kafka {

struct topic_entry {
    std::string name;
    topic_facts facts;
    bool known{false};  ///< The cluster was asked.
    bool asking{false};
    mono_time ask_at{};  ///< Not before, after a failed look.
    mono_time used{};

    topic_ptr on_main;
    std::vector<partition_gate> gates;
    std::size_t under_way{0};  ///< Rows on main.
    topic_ptr on_probe;
    std::int32_t partitions_on_probe{0};  ///< When that was made.
};

struct request {
    std::vector<outgoing_row> rows;
    completion<publish_outcome> done;
    channel where{channel::main};
    std::optional<std::string> header;  ///< The value of the sink's own header.

    struct place {
        topic_entry* topic{nullptr};
        std::int32_t partition{0};
        std::uint32_t bytes{0};
        mono_time handed_over{};  ///< To librdkafka.
    };
    std::vector<place> places;  ///< Of each row, once it is known.

    std::size_t next{0};     ///< The first row that is not yet placed.
    std::size_t settled{0};  ///< Rows.
    publish_outcome outcome;

    [[nodiscard]] std::optional<extra_header> extra() const {
        if (!header) return std::nullopt;
        return extra_header{kafka_sink::outbox_header, *header};
    }
};

/// Requests by a small number that is used again once a request is done.
class request_table {
public:
    [[nodiscard]] std::uint32_t add(std::unique_ptr<request> r);
    [[nodiscard]] request& at(std::uint32_t number) { return *slots_[number]; }
    [[nodiscard]] std::unique_ptr<request> take(std::uint32_t number);

    template <class F>
    void each(F visit) {
        for (std::uint32_t i = 0; i < slots_.size(); ++i)
            if (slots_[i]) visit(i);
    }

private:
    std::vector<std::unique_ptr<request>> slots_;
    std::vector<std::uint32_t> free_;
};

struct sink_parts {
    sink_parts(host& on, kafka_address to, kafka_sink_options with, partitioner by);

    topic_entry& topic(std::string_view name);

    /// Asks for a topic unless that is under way.
    void ask(topic_entry& which, mono_time now);

    /// Tells the host what is known now, before any completion that follows.
    void publish_facts(const topic_entry& which);

    /// Counts the row as settled; the request is completed with its last row.
    void settle(std::uint32_t number, std::uint32_t place, std::optional<row_failure> failure);

    [[nodiscard]] std::size_t extra_bytes(const request& of) const;
    [[nodiscard]] result<std::unique_ptr<producer>> make_producer(bool probe);

    /// Brokers that come and go, authentication that fails: counted and logged.
    void on_error(rd_kafka_resp_err_t code, const char* reason);
    void on_trouble(error why);
    void on_answer();

    host& home;
    log_sink& log;
    const kafka_address cluster;
    const kafka_sink_options options;
    const partitioner by;
    std::size_t main_bytes_max{1'000'000};  ///< message.max.bytes
    std::size_t probe_bytes_max{64 << 20};
    std::size_t batch_bytes_max{0};  ///< batch.size
    bool limit_is_users{false};
    int wake{-1};
    std::uint32_t seed{0};  ///< Where rows without a key go.

    request_table requests;
    std::unordered_map<std::string, std::unique_ptr<topic_entry>> topics;
    std::unique_ptr<topic_lookup> lookup;
    lifetime alive;  ///< Of the host's side.
    std::function<void(const std::string&, const topic_facts&)> known_on_host;

    mutable std::mutex counting;
    kafka_counters counts;  // guarded by counting

private:
    topic_entry* last_{nullptr};
    mono_time logged_{};
    std::optional<errc> logged_code_;
    recent_cause cause_;
};

}  // namespace millrace::kafka
