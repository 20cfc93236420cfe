#include "fleet.hpp"

#include <stdexcept>
#include <utility>

namespace millrace::e2e {

namespace {

constexpr const char* program = MILLRACE_PROGRAM;

std::string in_ms(std::chrono::milliseconds time) {
    return std::to_string(time.count()) + "ms";
}

void must(const support::command_result& done) {
    if (done.status != 0) throw std::runtime_error(done.errors);
}

}  // namespace

fleet::fleet(fleet_options options) : options_(options), deliveries_(folder_.path() / "deliveries") {
    must(support::run({program, "outbox", "init", "--outbox", "sqlite:" + database().string()}));
    must(stream("create", {"--shards", "4"}));
}

support::command_result fleet::stream(const std::string& verb, std::vector<std::string> arguments) const {
    arguments.insert(
        arguments.begin(),
        {program, "stream", verb, "--stream", "local:" + folder_.file("streams.db") + "/orders"}
    );
    return support::run(arguments);
}

support::command_result fleet::group_status() const {
    return support::run(
        {program,
         "group",
         "status",
         "--json",
         "--stream",
         "local:" + folder_.file("streams.db") + "/orders",
         "--group",
         "shipping",
         "--state",
         "sqlite:" + folder_.file("state.db")}
    );
}

support::process fleet::launch(role what, const std::string& name) const {
    const support::spawn_options files{
        .input = {},
        .output = what == role::worker ? folder_.path() / "deliveries" : std::filesystem::path{},
        .errors = folder_.path() / "log",
        .environment = {}};
    if (what == role::relay) {
        return support::process{
            {program,
             "relay",
             "--outbox",
             "sqlite:" + database().string(),
             "--sink",
             "local:" + folder_.file("streams.db"),
             "--lease",
             in_ms(options_.lease),
             "--client-window-rows",
             std::to_string(options_.client_window_rows),
             "--log-level",
             "info"},
            files};
    }
    return support::process{
        {program,
         "consume",
         "--stream",
         "local:" + folder_.file("streams.db") + "/orders",
         "--group",
         "shipping",
         "--state",
         "sqlite:" + folder_.file("state.db"),
         "--worker",
         name,
         "--lease",
         in_ms(options_.lease),
         "--checkpoint-records",
         std::to_string(options_.checkpoint_records),
         "--batch-records",
         std::to_string(options_.batch_records),
         "--log-level",
         "info",
         "--print"},
        files};
}

void fleet::start() {
    for (int i = 1; i <= options_.relays; ++i) {
        const auto name = "relay-" + std::to_string(i);
        members_.push_back({role::relay, name, launch(role::relay, name)});
    }
    for (int i = 1; i <= options_.workers; ++i) {
        const auto name = "worker-" + std::to_string(i);
        members_.push_back({role::worker, name, launch(role::worker, name)});
    }
}

void fleet::start_again(std::size_t index) {
    auto& again = members_.at(index);
    again.process = launch(again.what, again.name);
}

void fleet::start_renamed(std::size_t index) {
    members_.at(index).name += "-" + std::to_string(++renamed_);
    start_again(index);
}

}  // namespace millrace::e2e
