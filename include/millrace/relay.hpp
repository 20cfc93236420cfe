/// Moves the events of an outbox to a sink, at least once and in order per key, while this process leads.
///
/// Any number of relays may run on one outbox: one leads, the others wait and take over in at most a lease
/// time. One relay may serve several outboxes, each on its own: trouble with one does not stop the others.
/// `run` blocks and needs no other thread of the caller; a relay runs once.
#pragma once

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/names.hpp>
#include <millrace/options.hpp>
#include <millrace/outbox_look.hpp>
#include <millrace/schemas.hpp>
#include <millrace/time.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace millrace {

/// How a run with `once` ended.
enum class once_end : std::uint8_t {
    open,          ///< It runs, was stopped, or is none with `once`.
    nothing_left,  ///< Everything deliverable was delivered, by this relay or by the one that leads.
    gave_up,       ///< Nothing came of anything any more; `left` and `last_error` say more.
};

/// Totals since the start, and gauges; of one outbox, or summed up.
struct relay_status {
    std::string address;    ///< Of the outbox, without secrets; of a sum, empty unless there is only one.
    bool leading{false};    ///< Of a sum: at least one.
    millrace::epoch epoch;  ///< Of the present or latest lease; of a sum, the highest.
    std::uint64_t published{0};
    std::uint64_t acknowledged{0};
    std::uint64_t deleted{0};  ///< Delivered and gone from the outbox.
    std::uint64_t retried{0};
    std::uint64_t buried{0};           ///< Moved to the dead letters.
    std::vector<row_id> first_buried;  ///< The first 20 of them.
    std::uint64_t in_flight{0};
    std::uint64_t gaps{0};  ///< Ranges of ids that may still be filled.

    /// A second old at most while leading. Unknown before the first look.
    std::optional<outbox_look> outbox;

    std::uint64_t duplicates_at_risk{0};  ///< What a crash now would publish again, at most.
    std::uint64_t bytes_in_memory{0};

    std::uint64_t awaiting{0};             ///< Rows that wait for a schema, with those behind them.
    std::optional<schema_status> schemas;  ///< Of all outboxes together; none without rules.

    /// With `once`: rows that it could not deliver and left, estimated; `last_error` says why.
    std::uint64_t left{0};
    std::vector<row_id> first_left;  ///< The first 20 of them, as far as they had been read.
    once_end ended{once_end::open};  ///< Of a sum: `gave_up` if any did.

    /// Whether outbox and sink answer and it leads or would take over; of a sum, all.
    bool ready{false};
    std::string not_ready;  ///< Why it is not; of a sum, of the first that is not.

    /// The latest trouble with anything that is tried again; none once nothing is left to deliver.
    std::optional<error> last_error;
};

/// A relay began or ceased to lead an outbox.
struct leadership_change {
    enum class kind : std::uint8_t {
        acquired,
        given_back,  ///< Of its own will, after a drain.
        lost,        ///< Another leads, or may by now.
    };

    std::string outbox;
    kind what{kind::acquired};
    millrace::epoch epoch;
    std::string why;  ///< Of a loss.
};

/// What was delivered since the last such report and since the start.
struct relay_throughput {
    std::string outbox;
    std::uint64_t acknowledged{0};  ///< In `span`.
    nanoseconds span{0};
    std::uint64_t total{0};
    nanoseconds since_start{0};
};

struct relay_settings {
    std::string outbox;                 ///< An address, as the others; see `<millrace/url.hpp>`.
    std::vector<std::string> outboxes;  ///< More of them, in the same process and to the same sink.
    std::string sink;                   ///< The topic of an event names the stream or topic in it.

    /// When set, each record gets the header `millrace-outbox` with "EPOCH ID", by which a consumer can drop
    /// what a relay still sends that woke up after its lease. For one outbox; all its relays use the same.
    std::string outbox_id;

    /// To a partition of Kafka whose last acknowledgement is older, one row goes first; far below the
    /// brokers' `producer.id.expiration.ms`.
    nanoseconds idle_partition{std::chrono::minutes{1}};

    schema_settings schemas;

    relay_options tuning;
    leadership_options leadership;

    /// Where a fleet of relays keeps its members and who serves which outbox: a state, as `sqlite:PATH`.
    /// Empty: each outbox is led by itself.
    std::string fleet_state;
    std::string fleet{"relays"};  ///< The name of the fleet in that state.

    nanoseconds lease{std::chrono::seconds{5}};  ///< A waiting relay takes over from a dead one in this time.
    millrace::worker_id worker;                  ///< Empty: made from host, process and a random number.

    /// Return when nothing deliverable is left, or nothing comes of anything for `leadership.yield_after`, or
    /// a file is found damaged. While another relay leads, it waits until the outbox is empty.
    bool once{false};
    /// SIGTERM and SIGINT stop it as the stop token does; a second one ends the process.
    bool stop_on_signals{false};

    log_sink* log{nullptr};  ///< Null: nothing is logged. Must outlive the relay.

    /// Called on the relay's loop, so they must return at once. One that throws ends the run
    /// (`handler_failed`).
    std::function<void(const leadership_change&)> on_leadership;
    std::function<void(const relay_status&)> on_progress;  ///< The sum, about four times a second.

    /// For each outbox, when something was acknowledged and the last report is `throughput_every` old.
    std::function<void(const relay_throughput&)> on_throughput;
    nanoseconds throughput_every{std::chrono::seconds{5}};
};

class relay {
public:
    explicit relay(relay_settings settings);
    ~relay();
    relay(const relay&) = delete;
    relay& operator=(const relay&) = delete;

    /// Works until `stop` is requested (then drains within `tuning.drain_limit` and gives the lease back),
    /// until nothing is left with `once`, or until it cannot go on. What a server, a topic or a permission
    /// lacks is waited for. Errors: settings (`invalid_config`, `invalid_argument`), a file that is missing
    /// or unusable at the start, and the refusal that the `stop` policy met (of several outboxes, once the
    /// last has stopped).
    [[nodiscard]] result<relay_status> run(const std::stop_token& stop = {});

    /// The sum over all outboxes. At most a quarter of a second old. Thread-safe.
    [[nodiscard]] relay_status status() const;

    /// Of each outbox, in the order of the settings; empty before `run`. As `status`.
    [[nodiscard]] std::vector<relay_status> outboxes() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace millrace
