/// A private PostgreSQL and a private Kafka, each behind a proxy, relays between them, writers past the
/// proxy, and all that is done to them: one fault at a time, from a shuffled deck, each undone before the
/// next.
#pragma once

#include "postgres_kafka_fleet.hpp"
#include "support/fault_proxy.hpp"
#include "support/kafka_topics.hpp"
#include "support/keyed_writers.hpp"
#include "support/private_servers.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::e2e {

/// The servers and their topics: `orders`, on which rows can be refused, and `payments`, which can be denied.
struct proving_ground {
    explicit proving_ground(support::kafka_settings settings = {});

    support::private_postgres postgres;
    support::fault_proxy to_postgres;
    support::fault_proxy to_kafka;
    support::private_kafka kafka;
    std::vector<std::string> topics{"orders", "payments"};
    support::kafka_settings topic_settings;  ///< Beside the limit of `orders`.

    /// As the relays reach them.
    [[nodiscard]] std::string outbox() const;
    [[nodiscard]] std::string sink() const;

    /// Past the proxies.
    [[nodiscard]] std::string direct() const { return postgres.url(); }
};

class faults {
public:
    faults(proving_ground& ground, relay_fleet& relays, std::uint32_t seed);

    /// This relay is left alone, but for what is done to the servers.
    void spare(std::size_t index) { spared_ = index; }

    /// Every kind of fault, the usual ones more often, in a new order each time.
    enum class deck : std::uint8_t {
        everything,  ///< With a broker that is paused for 45 s.
        brief,       ///< What takes a few seconds each.
    };
    void shuffle(deck which);

    /// The next of the deck; false when it is empty. Throws when the ground does not come back.
    bool next();

    /// What was parked while rows were refused goes back into the outbox.
    void retry_dead();

    [[nodiscard]] std::uint64_t done() const;
    /// So many of them may repeat events.
    [[nodiscard]] std::uint64_t repeating() const noexcept { return repeating_; }
    [[nodiscard]] std::string counts() const;

    std::size_t pick(std::size_t bound) { return random_() % bound; }

private:
    struct fault {
        const char* name;
        bool (faults::*act)();  ///< False: it did not come to pass.
        bool repeats;           ///< Events may come twice.
        int in_everything;
        int in_brief;
    };
    static const std::vector<fault>& all();

    bool kill_relay();
    bool pause_relay();
    bool stop_relay();
    bool restart_postgres();
    bool crash_postgres();
    bool end_backends();
    bool cut_postgres();
    bool lose_postgres_reply();
    bool restart_kafka();
    bool crash_kafka();
    bool pause_kafka();
    bool cut_kafka();
    bool lose_kafka_reply();
    bool fail_deliveries();
    bool refuse_rows();
    bool deny_topic();

    /// A relay; the leading one every other time.
    std::size_t victim();
    [[nodiscard]] std::optional<std::size_t> leader() const;

    proving_ground& ground_;
    relay_fleet& relays_;
    std::mt19937 random_;
    std::optional<std::size_t> spared_;
    std::vector<const fault*> deck_;
    std::map<std::string_view, std::uint64_t> counts_;
    std::uint64_t repeating_{0};
};

/// Waits until nothing is undelivered, putting rows back that were parked by a relay that still knew the low
/// limit. False when the backlog does not shrink for so long.
bool drain(const proving_ground& ground, faults& with, std::chrono::seconds quiet_limit);

/// Rows in the outbox and in the dead letters.
[[nodiscard]] std::uint64_t undelivered(const proving_ground& ground);

}  // namespace millrace::e2e
