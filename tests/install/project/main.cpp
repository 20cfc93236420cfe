// Uses the installed library as a stranger would: the group alone, and the errors of a relay.
#include <millrace/consumer.hpp>
#include <millrace/group.hpp>
#include <millrace/relay.hpp>
#include <millrace/url.hpp>

#include <chrono>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::string folder = argv[1];
    auto group = millrace::group::join(
        {.name = "outside", .state = "sqlite:" + folder + "/state.db", .resources = {"only"}}
    );
    if (!group) return std::cerr << group.error().detail << '\n', 1;
    const auto lease = group->acquire(std::chrono::seconds{10});
    if (!lease) return std::cerr << lease.error().detail << '\n', 1;
    if (!lease->advance(7) || !lease->done()) return 1;
    const auto finished = group->finished("only");
    if (!finished || !*finished || !group->leave()) return 1;

    millrace::relay relay({.outbox = "sqlite:" + folder + "/missing.db", .sink = "kinesis:orders"});
    const auto refused = relay.run();
    if (refused || refused.error().detail.find("kinesis:orders") == std::string::npos) return 1;
    return 0;
}
