// The whole pipeline as real processes: an application, a relay, three workers; a shard is split, two are
// merged, a worker is killed; then every event is accounted for.

#include "application.hpp"
#include "pipeline.hpp"
#include "places.hpp"
#include "summary.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace millrace::demo {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto delivery_limit = std::chrono::seconds{30};  // without any progress

struct arguments {
    std::string millrace;
    std::optional<std::string> events;
    std::optional<std::uint64_t> orders;
    std::string kinesis;  ///< Addresses of servers; empty: files.
    std::string dynamodb;
};

arguments parse(int argc, char** argv) {
    arguments result;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const auto value = [&]() -> std::string {
            if (++i == argc) throw input_fault(argument + " needs a value");
            return argv[i];
        };
        if (argument == "--millrace") {
            result.millrace = std::filesystem::absolute(value()).string();
        } else if (argument == "--orders") {
            result.orders = number_of_orders(value());
        } else if (argument == "--kinesis") {
            result.kinesis = value();
        } else if (argument == "--dynamodb") {
            result.dynamodb = value();
        } else if (argument.starts_with("--") || result.events) {
            throw input_fault("usage: ./dev run [kinesis] [--orders N | events.ndjson]");
        } else {
            result.events = argument;
        }
    }
    return result;
}

/// What is done while events flow, each once so many in a hundred are delivered.
struct disturbance {
    std::uint64_t percent;
    const char* what;
    std::function<void()> act;
};

class demonstration {
public:
    demonstration(const arguments& given, workload work)
        : pipeline_(given.millrace, folder_.path(), places_of(given), work.topics),
          application_(given.millrace, pipeline_.database(), std::move(work)),
          follower_(pipeline_.deliveries(), application_) {}

    int run() {
        pipeline_.create();
        pipeline_.start();
        fmt::print(
            "an application writes {} events; a relay and {} workers are running\n",
            application_.work().events(),
            3 * application_.work().topics.size()
        );
        const auto begin = clock::now();
        auto writing = std::async(std::launch::async, [this, begin] {
            application_.write();
            return since(begin);
        });
        follow(writing);
        const auto whole = since(begin);
        const auto wrote = writing.get();
        follower_.all_written();
        const auto used = pipeline_.stop();
        follower_.read();
        if (progress_) fmt::print(stderr, "\r\033[K");
        fmt::print("{}", summary(follower_, used, wrote, whole));
        const bool clean = follower_.check().report().clean();
        if (!clean) fmt::print("the log of all processes:\n{}", support::read_file(pipeline_.log()));
        return clean ? 0 : 1;
    }

private:
    [[nodiscard]] places places_of(const arguments& given) const {
        return given.kinesis.empty() ? in_files(folder_.path()) : in_kinesis(given.kinesis, given.dynamodb);
    }

    static milliseconds since(clock::time_point begin) {
        return std::chrono::duration_cast<milliseconds>(clock::now() - begin);
    }

    void follow(std::future<milliseconds>& writing) {
        const auto total = application_.work().events();
        auto next = disturbances_.begin();
        auto last_progress = clock::now();
        auto seen = follower_.delivered();
        while (follower_.delivered() < total || next != disturbances_.end()) {
            support::pause_briefly();
            follower_.read();
            if (writing.wait_for(milliseconds{0}) == std::future_status::ready &&
                application_.written() < total) {
                writing.get();  // rethrows why it ended early
            }
            if (next != disturbances_.end() && follower_.delivered() * 100 >= total * next->percent) {
                next->act();
                say(fmt::format("{} at {} of {} deliveries", next->what, follower_.delivered(), total));
                ++next;
            }
            if (const auto who = pipeline_.broken()) {
                throw std::runtime_error(
                    fmt::format("{} ended by itself:\n{}", *who, support::read_file(pipeline_.log()))
                );
            }
            if (follower_.delivered() != seen) {
                seen = follower_.delivered();
                last_progress = clock::now();
            } else if (clock::now() - last_progress > delivery_limit) {
                break;  // the summary counts what is missing
            }
            show(total);
        }
    }

    void say(const std::string& text) const {
        if (progress_) fmt::print(stderr, "\r\033[K");
        fmt::print("{}\n", text);
        std::fflush(stdout);
    }

    void show(std::uint64_t total) {
        if (!progress_ || clock::now() - shown_ < milliseconds{100}) return;
        shown_ = clock::now();
        fmt::print(
            stderr,
            "\r\033[K{} written, {} delivered of {}",
            application_.written(),
            follower_.delivered(),
            total
        );
    }

    support::temporary_folder folder_;
    pipeline pipeline_;
    application application_;
    follower follower_;
    bool progress_ = ::isatty(STDERR_FILENO) != 0;
    clock::time_point shown_;
    std::vector<disturbance> disturbances_{
        {20, "a shard was split", [this] { pipeline_.split_a_shard(); }},
        {40, "two shards were merged", [this] { pipeline_.merge_two_shards(); }},
        {60, "a worker was killed (SIGKILL)", [this] { pipeline_.kill_a_worker(); }},
        {75, "the killed worker was started again", [this] { pipeline_.restart_the_worker(); }},
    };
};

int run(int argc, char** argv) {
    const auto given = parse(argc, argv);
    auto work = given.events ? read_events(*given.events) : workload{};
    if (given.orders) work.orders = *given.orders;
    return demonstration{given, std::move(work)}.run();
}

}  // namespace
}  // namespace millrace::demo

int main(int argc, char** argv) {
    return millrace::demo::run_named("millrace-demo", [&] { return millrace::demo::run(argc, argv); });
}
