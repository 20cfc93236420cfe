#include "pipeline.hpp"

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace millrace::demo {

namespace {

constexpr int shards = 4;
constexpr int workers_per_topic = 3;
constexpr std::size_t the_victim = 1;
constexpr auto stop_limit = std::chrono::seconds{20};

}  // namespace

pipeline::pipeline(
    std::string millrace, std::filesystem::path folder, places where, std::vector<std::string> topics
)
    : millrace_(std::move(millrace)),
      folder_(std::move(folder)),
      where_(std::move(where)),
      topics_(std::move(topics)) {}

void pipeline::command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), millrace_);
    const auto done = support::run(arguments);
    if (done.status != 0) {
        throw std::runtime_error(fmt::format("`{}` failed: {}", fmt::join(arguments, " "), done.errors));
    }
}

support::process pipeline::start_worker(const std::string& topic, const std::string& name) const {
    return support::process{
        {millrace_,
         "consume",
         "--stream",
         where_.stream(topic),
         "--group",
         "shipping",
         "--state",
         where_.state,
         "--worker",
         name,
         "--print"},
        {.input = {}, .output = deliveries(), .errors = log(), .environment = {}}};
}

void pipeline::create() {
    command({"outbox", "init", "--outbox", "sqlite:" + database().string()});
    for (const auto& topic : topics_) {
        command({"stream", "create", "--shards", std::to_string(shards), "--stream", where_.stream(topic)});
    }
}

void pipeline::start() {
    relay_.emplace(
        std::vector<std::string>{
            millrace_, "relay", "--outbox", "sqlite:" + database().string(), "--sink", where_.sink},
        support::spawn_options{.input = {}, .output = {}, .errors = log(), .environment = {}}
    );
    for (const auto& topic : topics_) {
        for (int i = 1; i <= workers_per_topic; ++i) {
            const auto name =
                topics_.size() == 1 ? fmt::format("worker-{}", i) : fmt::format("{}-{}", topic, i);
            workers_.push_back({name, topic, start_worker(topic, name)});
        }
    }
}

void pipeline::split_a_shard() {
    command({"stream", "split", "--stream", where_.stream(topics_.front()), "--shard", "shardId-000000000000"}
    );
}

void pipeline::merge_two_shards() {
    command(
        {"stream",
         "merge",
         "--stream",
         where_.stream(topics_.front()),
         "--shard",
         "shardId-000000000002",
         "--shard",
         "shardId-000000000003"}
    );
}

void pipeline::kill_a_worker() {
    auto& victim = workers_.at(the_victim).process;
    victim.signal(SIGKILL);
    if (const auto report = victim.wait(stop_limit)) account(*report);
}

void pipeline::restart_the_worker() {
    auto& victim = workers_.at(the_victim);
    victim.process = start_worker(victim.topic, victim.name);
}

std::optional<std::string> pipeline::broken() {
    if (relay_ && !relay_->running()) return "the relay";
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (i != the_victim && !workers_[i].process.running()) return workers_[i].name;
    }
    return std::nullopt;
}

void pipeline::account(const support::exit_report& report) {
    usage_.workers_cpu += report.cpu;
    usage_.worker_memory_kib = std::max(usage_.worker_memory_kib, report.peak_memory_kib);
}

usage pipeline::stop() {
    relay_->signal(SIGTERM);
    for (auto& each : workers_)
        each.process.signal(SIGTERM);
    const auto relay = relay_->wait(stop_limit);
    if (!relay) throw std::runtime_error("the relay did not end after SIGTERM");
    usage_.relay_cpu = relay->cpu;
    usage_.relay_memory_kib = relay->peak_memory_kib;
    for (auto& each : workers_) {
        const auto report = each.process.wait(stop_limit);
        if (!report) throw std::runtime_error(each.name + " did not end after SIGTERM");
        account(*report);
    }
    return usage_;
}

}  // namespace millrace::demo
