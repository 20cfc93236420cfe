// The relay between real servers, as real processes: an application writes to PostgreSQL, two relays publish
// to Kafka, the active one is killed; a consumer reads the topic back, and every event is accounted for. With
// schemas, values go out as Avro, and a consumer in Python decodes each of them.

#include "figures.hpp"
#include "postgres_shop.hpp"
#include "schemas.hpp"
#include "support/delivery_check.hpp"
#include "support/kafka_topics.hpp"
#include "support/process.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"
#include "support/temporary_folder.hpp"
#include "words.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace millrace::demo {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto delivery_limit = std::chrono::seconds{30};  // without any progress
constexpr auto stop_limit = std::chrono::seconds{20};
constexpr int partitions = 8;
constexpr std::uint64_t kill_at_percent = 40;
constexpr std::uint64_t return_at_percent = 70;

struct arguments {
    std::string millrace;
    std::string postgres;  ///< Addresses of the servers.
    std::string kafka;
    std::uint64_t orders{20'000};
    schema_arguments schemas;  ///< Without a registry: none.
};

arguments parse(int argc, char** argv) {
    arguments result;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        const auto value = [&]() -> std::string {
            if (++i == argc) throw input_fault(name + " needs a value");
            return argv[i];
        };
        if (name == "--millrace") {
            result.millrace = std::filesystem::absolute(value()).string();
        } else if (name == "--postgres") {
            result.postgres = value();
        } else if (name == "--kafka") {
            result.kafka = value();
        } else if (name == "--orders") {
            result.orders = number_of_orders(value());
        } else if (name == "--registry") {
            result.schemas.registry = value();
        } else if (name == "--services") {
            result.schemas.services = value();
        } else if (name == "--consumer") {
            result.schemas.consumer = value();
        } else {
            throw input_fault("usage: ./dev run postgres-kafka [--orders N] [--schemas]");
        }
    }
    return result;
}

milliseconds since(clock::time_point begin) {
    return std::chrono::duration_cast<milliseconds>(clock::now() - begin);
}

/// A database of the demonstration's own on the server, gone at the end.
class own_database {
public:
    explicit own_database(std::string server)
        : address_(std::move(server)), server_(address_), name_(support::unique_name("shop")) {
        server_.execute("CREATE DATABASE " + name_);
    }
    ~own_database() {
        try {
            server_.execute("DROP DATABASE " + name_ + " WITH (FORCE)");
        } catch (const std::exception& problem) {
            fmt::print(stderr, "the database {} stays: {}\n", name_, problem.what());
        }
    }
    own_database(const own_database&) = delete;
    own_database& operator=(const own_database&) = delete;

    [[nodiscard]] std::string url() const {
        auto url = address_;
        return url.replace(url.rfind('/') + 1, std::string::npos, name_);
    }

private:
    std::string address_;
    support::sql_connection server_;
    std::string name_;
};

class demonstration {
public:
    explicit demonstration(arguments given)
        : given_(std::move(given)),
          database_(given_.postgres),
          shop_(database_.url(), topic_, given_.orders) {
        support::kafka_admin{given_.kafka}.create_topic(topic_, partitions);
        const auto made = support::run({given_.millrace, "outbox", "init", "--outbox", database_.url()});
        if (made.status != 0) throw std::runtime_error("millrace outbox init: " + made.errors);
        reader_.emplace(given_.kafka, topic_);
        if (!given_.schemas.registry.empty()) decoder_.emplace(given_.schemas, folder_.path());
        write_configuration();
    }

    int run() {
        fmt::print("an application writes {} orders and their events to PostgreSQL\n", shop_.orders());
        if (decoder_) decoder_->start(given_.kafka, topic_, shop_.orders());
        relays_[0] = start_relay();
        const auto begin = clock::now();
        auto writing = std::async(std::launch::async, [this, begin] {
            shop_.write();
            return since(begin);
        });
        follow(writing);
        const auto whole = since(begin);
        const auto wrote = writing.get();
        for (std::uint64_t number = 1; number <= shop_.written(); ++number)
            check_.written(number);
        for (auto& relay : relays_)
            stop(relay);
        take(reader_->read());
        print_summary(wrote, whole);
        const bool clean = check_.report().clean() && (!decoder_ || all_decoded());
        support::kafka_admin{given_.kafka}.delete_topic(topic_);
        if (!clean) fmt::print("the log of the relays:\n{}", support::read_file(log()));
        return clean ? 0 : 1;
    }

private:
    [[nodiscard]] std::filesystem::path log() const { return folder_.path() / "relays.log"; }
    [[nodiscard]] std::filesystem::path configuration() const { return folder_.path() / "millrace.yaml"; }

    void write_configuration() const {
        std::ofstream file{configuration()};
        file << fmt::format("relay:\n  outbox: {}\n  sink: kafka://{}\n", database_.url(), given_.kafka);
        if (decoder_) file << decoder_->section(topic_);
    }

    [[nodiscard]] std::optional<support::process> start_relay() const {
        return support::process{
            {given_.millrace, "relay", "--config", configuration().string()},
            {.input = {}, .output = {}, .errors = log(), .environment = {}}};
    }

    /// Reads the topic until all is there; the relays are disturbed at their marks.
    void follow(std::future<milliseconds>& writing) {
        auto last_progress = clock::now();
        std::optional<clock::time_point> killed;
        bool returned = false;
        while (check_.distinct() < shop_.orders()) {
            if (writing.wait_for(milliseconds{0}) == std::future_status::ready &&
                shop_.written() < shop_.orders()) {
                writing.get();  // rethrows why it ended early
            }
            if (take(reader_->next(milliseconds{100}))) {
                last_progress = clock::now();
                if (killed && !took_over_) took_over_ = since(*killed);
            } else if (clock::now() - last_progress > delivery_limit) {
                return;  // the summary counts what is missing
            }
            const auto percent = check_.distinct() * 100 / shop_.orders();
            if (!relays_[1] && percent > 0) {
                relays_[1] = start_relay();
                say("a second relay waits beside the active one");
            } else if (!killed && percent >= kill_at_percent) {
                killed = clock::now();
                relays_[0]->signal(SIGKILL);
                stop(relays_[0]);
                take(reader_->read());  // what it had published; the next record is the other's
                say("the active relay was killed (SIGKILL)");
            } else if (!returned && percent >= return_at_percent) {
                relays_[0] = start_relay();
                returned = true;
                say("the killed relay was started again");
            }
        }
    }

    void say(const char* what) const {
        fmt::print("{} at {} of {} records\n", what, check_.distinct(), shop_.orders());
        std::fflush(stdout);
    }

    /// Whether an event was among them that had not come before.
    bool take(const std::vector<support::topic_record>& records) {
        const auto before = check_.distinct();
        for (const auto& record : records) {
            const auto number =
                std::stoull(record.header(std::string(support::event_number_header)).value_or("0"));
            if (!check_.delivered(number, record.key)) continue;
            // A record can be seen here before the application's thread has noted the time of its commit.
            const auto committed = shop_.committed_at(number);
            latencies_.push_back(committed == clock::time_point{} ? milliseconds{0} : since(committed));
        }
        return check_.distinct() != before;
    }

    void stop(std::optional<support::process>& relay) {
        if (!relay) return;
        relay->signal(SIGTERM);
        const auto report = relay->wait(stop_limit);
        if (!report) throw std::runtime_error("a relay did not end after SIGTERM");
        cpu_ += report->cpu;
        memory_kib_ = std::max(memory_kib_, report->peak_memory_kib);
        relay.reset();
    }

    /// What the consumer in Python made of the values.
    [[nodiscard]] bool all_decoded() {
        support::sql_connection shop{database_.url()};
        const auto found = decoder_->compare(shop);
        fmt::print("decoded by {}\n", found.client);
        fmt::print("  as written       {:>10}\n", found.decoded);
        fmt::print("  otherwise        {:>10}\n", found.otherwise);
        return found.decoded == shop_.orders() && found.otherwise == 0;
    }

    void print_summary(milliseconds wrote, milliseconds whole) {
        const auto report = check_.report();
        const auto rate = static_cast<double>(report.delivered) / std::max(0.001, seconds(whole));
        fmt::print("  written          {:>10}\n", report.written);
        fmt::print("  delivered        {:>10}\n", report.delivered);
        fmt::print("  lost             {:>10}\n", report.lost);
        fmt::print("  out of order     {:>10}\n", report.out_of_order);
        fmt::print("  delivered twice  {:>10}\n", report.published_twice);
        fmt::print(
            "  rate             {:>10.0f}   events/s from the first commit to the last record\n", rate
        );
        fmt::print("where the time went\n");
        fmt::print("  the application wrote for {:.1f} s of {:.1f} s\n", seconds(wrote), seconds(whole));
        fmt::print("  commit to consumer: {}\n", percentiles(std::move(latencies_)));
        if (took_over_) fmt::print("  the second relay took over within {} ms\n", took_over_->count());
        fmt::print(
            "  relays {:.2f} CPU-s, {:.0f} MiB the largest\n",
            seconds(cpu_),
            static_cast<double>(memory_kib_) / 1024.0
        );
    }

    arguments given_;
    own_database database_;
    std::string topic_ = support::unique_name("orders");
    postgres_shop shop_;
    support::temporary_folder folder_;
    std::optional<support::topic_reader> reader_;
    std::optional<schema_consumer> decoder_;
    std::array<std::optional<support::process>, 2> relays_;
    support::delivery_check check_;
    std::vector<milliseconds> latencies_;
    std::optional<milliseconds> took_over_;
    std::chrono::microseconds cpu_{0};
    std::int64_t memory_kib_{0};
};

}  // namespace
}  // namespace millrace::demo

int main(int argc, char** argv) {
    return millrace::demo::run_named("millrace-demo-postgres-kafka", [&] {
        return millrace::demo::demonstration{millrace::demo::parse(argc, argv)}.run();
    });
}
