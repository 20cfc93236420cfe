/// A private kinesis-local and a private store, each behind a proxy, four workers between them, a load past
/// the proxies, and all that is done to them: one fault at a time, from a shuffled deck, each undone before
/// the next.
#pragma once

#include "kinesis_group_workers.hpp"
#include "kinesis_load.hpp"
#include "support/fault_proxy.hpp"
#include "support/private_servers.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::e2e {

/// A server that keeps the state, on its own.
class private_store {
public:
    virtual ~private_store() = default;
    virtual std::unique_ptr<group_state> state(const group_name& of) = 0;
    virtual void crash() = 0;    ///< And start.
    virtual void restart() = 0;  ///< In order, where it has one.
};

/// The names of the stores, as tests have them.
inline constexpr const char* in_dynamodb = "Dynamodb";
inline constexpr const char* in_postgres = "Postgres";

[[nodiscard]] std::unique_ptr<private_store> make_private_store(const std::string& kind);

struct kinesis_ground {
    explicit kinesis_ground(const std::string& kind);
    ~kinesis_ground() { load.stop(); }
    kinesis_ground(const kinesis_ground&) = delete;
    kinesis_ground& operator=(const kinesis_ground&) = delete;

    support::private_kinesis kinesis;
    std::unique_ptr<private_store> store;
    std::unique_ptr<group_state> state;
    support::fault_proxy to_kinesis;
    support::fault_proxy to_store;
    kinesis_load load;
    worker_fleet workers;
    group_watch watch;
};

class kinesis_faults {
public:
    kinesis_faults(kinesis_ground& ground, std::uint32_t seed);

    /// The next of the deck; false when it is empty. Throws when something does not come back.
    bool next();

    [[nodiscard]] std::string counts() const;
    std::size_t pick(std::size_t bound) { return random_() % bound; }

private:
    struct fault {
        const char* name;
        bool (kinesis_faults::*act)();  ///< False: it did not come to pass.
        int times;
    };
    static const std::vector<fault>& all();

    bool kill_worker();
    bool kill_all();
    bool pause_worker();
    bool stop_worker();
    bool split() { return ground_.load.split(ground_.watch, random_); }
    bool merge() { return ground_.load.merge(ground_.watch, random_); }
    bool scale() { return ground_.load.scale(ground_.watch, random_); }
    bool crash_store();
    bool restart_store();
    bool cut_store();
    bool lose_store_reply();
    bool silence_store();
    bool silence_store_past_the_lease();
    bool cut_stream();
    bool lose_stream_reply();
    bool silence_stream();

    template <class F>
    bool disturb(const std::string& worker, std::uint64_t repeats, F act);
    void start_somewhere(std::size_t index);

    kinesis_ground& ground_;
    std::mt19937 random_;
    std::vector<const fault*> deck_;
    std::map<std::string_view, std::uint64_t> counts_;
    std::uint64_t renamed_{0};
};

}  // namespace millrace::e2e
