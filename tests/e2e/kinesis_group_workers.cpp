#include "kinesis_group_workers.hpp"

#include "kinesis_load.hpp"

#include <csignal>
#include <stdexcept>
#include <utility>

namespace millrace::e2e {

namespace {

constexpr std::chrono::seconds stop_limit{30};

std::string in_ms(std::chrono::milliseconds time) {
    return std::to_string(time.count()) + "ms";
}

const std::vector<std::string> keys{"AWS_ACCESS_KEY_ID=" + kinesis_account, "AWS_SECRET_ACCESS_KEY=secret"};

}  // namespace

std::vector<std::string> worker_fleet::command(const std::string& name) const {
    return {
        MILLRACE_PROGRAM,
        "consume",
        "--stream",
        options_.stream,
        "--group",
        kinesis_group_name,
        "--state",
        options_.state,
        "--worker",
        name,
        "--lease",
        in_ms(options_.lease),
        "--checkpoint-records",
        std::to_string(options_.checkpoint_records),
        "--batch-records",
        std::to_string(options_.batch_records),
        "--tip-interval",
        "200ms",
        "--log-level",
        "info",
        "--print"};
}

std::size_t worker_fleet::start(const std::string& name, machine on) {
    support::spawn_options how;
    how.output = deliveries();
    how.errors = folder_.path() / "log";
    how.environment = keys;
    how.own_pid_namespace = on == machine::another;
    members_.push_back({name, support::process{command(name), how}});
    return members_.size() - 1;
}

void worker_fleet::start_again(std::size_t index, const std::string& name, machine on) {
    start(name, on);
    members_.at(index) = std::move(members_.back());
    members_.pop_back();
}

void worker_fleet::kill(std::size_t index) {
    auto& victim = members_.at(index);
    victim.process.signal(SIGKILL);
    if (!victim.process.wait(stop_limit)) throw std::runtime_error(victim.name + " survived SIGKILL");
}

std::optional<int> worker_fleet::stop(std::size_t index) {
    auto& one = members_.at(index).process;
    if (one.running()) {
        one.ask_to_end();
    }
    const auto ended = one.wait(stop_limit);
    return ended ? std::optional(ended->status) : std::nullopt;
}

std::optional<std::string> worker_fleet::ended_by_itself() {
    for (auto& one : members_)
        if (!one.process.running()) return one.name;
    return std::nullopt;
}

support::command_result worker_fleet::rest() const {
    auto last = command("last");
    last.insert(last.end(), {"--idle-exit", "1s"});
    support::spawn_options how;
    how.environment = keys;
    return support::run(last, how, std::chrono::seconds{60});
}

}  // namespace millrace::e2e
