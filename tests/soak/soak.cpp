// Relays under load for as long as asked, with faults now and then: prints the rate, the size of the outbox's
// table, the memory of a relay that is never restarted, and what was lost, inverted or delivered twice.

#include "e2e/postgres_kafka_faults.hpp"
#include "support/keyed_check.hpp"
#include "support/keyed_writers.hpp"
#include "support/sql_connection.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace millrace::soak {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr std::size_t spared_relay = 0;
constexpr auto quiet_limit = 120s;
constexpr auto report_every = 10s;
constexpr auto fault_every_least = 3s;
constexpr auto fault_every_most = 15s;
constexpr std::int64_t memory_limit_kib = 96 * 1024;
constexpr std::int64_t drift_limit_kib = 16 * 1024;

struct arguments {
    double minutes{30};
    double rows_per_second{5'000};
};

arguments parse(int argc, char** argv) {
    arguments given;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const bool rate = argument == "--rate" && i + 1 < argc;
        auto& value = rate ? given.rows_per_second : given.minutes;
        char* end = nullptr;
        value = std::strtod(rate ? argv[++i] : argv[i], &end);
        if (*end != '\0' || value <= 0) throw std::runtime_error("usage: ./dev soak [MINUTES] [--rate ROWS]");
    }
    return given;
}

/// What was kept in sealed segments long ago has been read and checked.
support::kafka_settings short_retention() {
    return {{"segment.bytes", "16777216"}, {"retention.bytes", "134217728"}};
}

/// Reads the topics on a thread of its own as they grow, and checks each record.
class follower {
public:
    explicit follower(const e2e::proving_ground& ground)
        : bootstrap_(ground.kafka.bootstrap()), topics_(ground.topics), thread_([this] { follow(); }) {}
    ~follower() { stop(); }
    follower(const follower&) = delete;
    follower& operator=(const follower&) = delete;

    void stop() {
        stops_ = true;
        if (thread_.joinable()) thread_.join();
    }
    [[nodiscard]] support::keyed_report report() const {
        const std::lock_guard lock{mutex_};
        return check_.report();
    }
    [[nodiscard]] std::uint64_t distinct() const {
        const std::lock_guard lock{mutex_};
        return check_.distinct();
    }
    [[nodiscard]] std::uint64_t inverted() const {
        const std::lock_guard lock{mutex_};
        return check_.inverted();
    }
    /// Why it could not read on.
    [[nodiscard]] std::string trouble() const {
        const std::lock_guard lock{mutex_};
        return trouble_;
    }
    void judge(const support::keyed_writers& writers) {
        const std::lock_guard lock{mutex_};
        writers.judge(check_);
    }

private:
    void follow() {
        try {
            std::vector<support::topic_reader> readers;
            for (const auto& topic : topics_)
                readers.emplace_back(bootstrap_, topic);
            while (!stops_)
                for (std::size_t i = 0; i < readers.size(); ++i)
                    take(topics_[i], readers[i].next(50ms));
        } catch (const std::exception& problem) {
            const std::lock_guard lock{mutex_};
            trouble_ = problem.what();
        }
    }

    void take(const std::string& topic, const std::vector<support::topic_record>& records) {
        const std::lock_guard lock{mutex_};
        for (const auto& record : records)
            check_.seen(topic, record.key.value_or(""), record.value.value_or(""));
    }

    std::string bootstrap_;
    std::vector<std::string> topics_;
    std::atomic<bool> stops_{false};
    mutable std::mutex mutex_;
    support::keyed_check check_;
    std::string trouble_;
    std::thread thread_;
};

std::int64_t resident_kib(pid_t process) {
    std::ifstream file{"/proc/" + std::to_string(process) + "/status"};
    for (std::string word; file >> word;)
        if (std::int64_t kib = 0; word == "VmRSS:" && file >> kib) return kib;
    return 0;
}

class soak {
public:
    explicit soak(arguments given)
        : given_(given),
          relays_({.outbox = ground_.outbox(), .sink = ground_.sink(), .more = {"--log-level", "warning"}}),
          writers_(
              ground_.direct(),
              {.writers = 16,
               .keys = 1'000,
               .topics = ground_.topics,
               .rows_per_second = given.rows_per_second,
               .large_percent = 1}
          ),
          follower_(ground_),
          faults_(ground_, relays_, seed_) {
        faults_.spare(spared_relay);
    }

    int run() {
        std::printf(
            "%.1f minutes at %.0f rows/s, 4 relays, seed %u\n"
            "  time   written/s   delivered/s   waiting   table MB   relay MB   faults   inverted   twice\n",
            given_.minutes,
            given_.rows_per_second,
            seed_
        );
        const auto end =
            clock::now() + std::chrono::duration_cast<clock::duration>(seconds{60 * given_.minutes});
        auto next_report = clock::now() + report_every;
        auto next_fault = clock::now() + fault_every_least;
        while (clock::now() < end && follower_.trouble().empty() && !relays_.ended_by_itself()) {
            if (clock::now() >= next_fault) {
                while (!faults_.next())
                    faults_.shuffle(e2e::faults::deck::brief);
                next_fault = clock::now() + fault_every_least +
                             std::chrono::milliseconds{faults_.pick(
                                 std::chrono::milliseconds{fault_every_most - fault_every_least}.count()
                             )};
            }
            if (clock::now() >= next_report) {
                report();
                next_report += report_every;
            }
            std::this_thread::sleep_for(50ms);
        }
        return conclude();
    }

private:
    /// A line while nothing is broken: the servers are up between two faults.
    void report() {
        support::sql_connection sql{ground_.direct()};
        const auto table = sql.number("SELECT pg_total_relation_size('outbox')");
        const auto waiting = sql.number("SELECT coalesce(max(id) - min(id) + 1, 0) FROM outbox");
        const auto now = clock::now();
        const auto span = seconds{now - last_report_}.count();
        const auto written = writers_.rows();
        const auto delivered = follower_.distinct();
        memory_kib_.push_back(resident_kib(relays_.relay(spared_relay).pid()));
        std::printf(
            "%5.0f s %10.0f %13.0f %9lld %10.1f %10.1f %8lu %10lu %7lu\n",
            seconds{now - begin_}.count(),
            static_cast<double>(written - written_) / span,
            static_cast<double>(delivered - delivered_) / span,
            waiting,
            static_cast<double>(table) / 1e6,
            static_cast<double>(memory_kib_.back()) / 1024,
            faults_.done(),
            follower_.inverted(),
            follower_.report().twice
        );
        std::fflush(stdout);
        last_report_ = now;
        written_ = written;
        delivered_ = delivered;
    }

    /// Between the first fifth of the time, when caches have filled, and the end.
    [[nodiscard]] std::int64_t drift_kib() const {
        return memory_kib_.empty() ? 0 : memory_kib_.back() - memory_kib_.at(memory_kib_.size() / 5);
    }

    int conclude() {
        const auto ended = relays_.ended_by_itself();
        writers_.stop();
        const bool drained = !ended && e2e::drain(ground_, faults_, quiet_limit);
        const bool stopped = relays_.stop();
        for (auto progress = clock::now(), limit = progress + 10s; progress < limit;
             progress = clock::now()) {
            const auto before = follower_.distinct();
            std::this_thread::sleep_for(1s);
            if (follower_.distinct() != before) limit = clock::now() + 10s;
        }
        follower_.stop();
        follower_.judge(writers_);
        const auto found = follower_.report();
        const auto peak = memory_kib_.empty() ? 0 : *std::max_element(memory_kib_.begin(), memory_kib_.end());
        const auto allowed = faults_.repeating() * relays_.options().repeats_of_a_fault();
        std::printf("faults: %s\n", faults_.counts().c_str());
        std::printf(
            "%lu delivered, %lu lost, %lu inverted, %lu unknown, %lu twice (at most %lu are promised)\n"
            "relay: %.1f MB at most, drift %+.1f MB\n",
            found.delivered,
            found.lost,
            found.inverted,
            found.unknown,
            found.twice,
            allowed,
            static_cast<double>(peak) / 1024,
            static_cast<double>(drift_kib()) / 1024
        );
        std::vector<std::string> wrong;
        if (ended) wrong.push_back(*ended + " ended by itself");
        if (!follower_.trouble().empty()) wrong.push_back("the topic cannot be read: " + follower_.trouble());
        if (!drained) wrong.push_back("rows are left");
        if (!stopped) wrong.push_back("a relay did not end by status 0 after SIGTERM");
        if (!found.clean()) wrong.push_back(found.first_fault);
        if (found.twice > allowed) wrong.push_back("more came twice than promised");
        if (peak > memory_limit_kib) wrong.push_back("the relay's memory is above its limit");
        if (drift_kib() > drift_limit_kib) wrong.push_back("the relay's memory grows");
        for (const auto& what : wrong)
            std::printf("WRONG: %s\n", what.c_str());
        if (!wrong.empty()) std::printf("the log of the relays:\n%s\n", relays_.log().c_str());
        return wrong.empty() ? 0 : 1;
    }

    arguments given_;
    std::uint32_t seed_{std::random_device{}()};
    e2e::proving_ground ground_{short_retention()};
    e2e::relay_fleet relays_;
    support::keyed_writers writers_;
    follower follower_;
    e2e::faults faults_;
    clock::time_point begin_{clock::now()};
    clock::time_point last_report_{begin_};
    std::uint64_t written_{0};
    std::uint64_t delivered_{0};
    std::vector<std::int64_t> memory_kib_;
};

}  // namespace
}  // namespace millrace::soak

int main(int argc, char** argv) {
    try {
        return millrace::soak::soak{millrace::soak::parse(argc, argv)}.run();
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "millrace-soak: %s\n", problem.what());
        return 1;
    }
}
