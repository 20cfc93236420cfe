#include "postgres_kafka_fleet.hpp"

#include <csignal>
#include <stdexcept>
#include <thread>
#include <utility>

namespace millrace::e2e {

namespace {

constexpr const char* program = MILLRACE_PROGRAM;
constexpr std::chrono::seconds stop_limit{30};

std::string in_ms(std::chrono::milliseconds time) {
    return std::to_string(time.count()) + "ms";
}

}  // namespace

void make_outbox(const std::string& url) {
    const auto made = support::run({program, "outbox", "init", "--outbox", url});
    if (made.status != 0) throw std::runtime_error("millrace outbox init: " + made.errors);
}

relay_fleet::relay_fleet(relay_fleet_options options) : options_(std::move(options)) {
    make_outbox(options_.outbox);
    for (std::size_t i = 0; i < static_cast<std::size_t>(options_.relays); ++i)
        relays_.push_back(launch(i));
}

support::process relay_fleet::launch(std::size_t index) const {
    std::vector<std::string> command{
        program,
        "relay",
        "--outbox",
        options_.outbox,
        "--sink",
        options_.sink,
        "--worker",
        name(index),
        "--lease",
        in_ms(options_.lease),
        "--fetch-rows",
        std::to_string(std::min<std::uint64_t>(500, options_.window_rows)),
        "--window-rows",
        std::to_string(options_.window_rows),
        "--client-window-rows",
        std::to_string(options_.client_window_rows)};
    command.insert(command.end(), options_.more.begin(), options_.more.end());
    return support::process{
        command, {.input = {}, .output = log_file(), .errors = log_file(), .environment = {}}};
}

void relay_fleet::kill(std::size_t index) {
    auto& victim = relays_.at(index);
    victim.signal(SIGKILL);
    if (!victim.wait(stop_limit)) throw std::runtime_error(name(index) + " survived SIGKILL");
    victim = launch(index);
}

void relay_fleet::pause(std::size_t index) {
    constexpr std::chrono::milliseconds beyond{1500};
    relays_.at(index).signal(SIGSTOP);
    std::this_thread::sleep_for(options_.lease + beyond);
    relays_.at(index).signal(SIGCONT);
}

std::optional<int> relay_fleet::restart(std::size_t index) {
    auto& relay = relays_.at(index);
    relay.ask_to_end();
    const auto ended = relay.wait(stop_limit);
    if (!ended) return std::nullopt;
    relay = launch(index);
    return ended->status;
}

bool relay_fleet::stop() {
    for (auto& relay : relays_) {
        relay.ask_to_end();
    }
    bool all = true;
    for (auto& relay : relays_) {
        const auto ended = relay.wait(stop_limit);
        all = all && ended && ended->status == 0;
    }
    return all;
}

std::optional<std::string> relay_fleet::ended_by_itself() {
    for (std::size_t i = 0; i < relays_.size(); ++i)
        if (!relays_[i].running()) return name(i);
    return std::nullopt;
}

support::command_result relay_fleet::outbox(const std::string& url, std::vector<std::string> verb_and_options)
    const {
    std::vector<std::string> command{program, "outbox"};
    command.insert(command.end(), verb_and_options.begin(), verb_and_options.end());
    command.insert(command.end(), {"--outbox", url});
    return support::run(command);
}

}  // namespace millrace::e2e
