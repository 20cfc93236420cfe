// `./dev bench [NAME ...]`: measures and prints one table. Also runs the probes, as processes of their own.

#include "group/measure_group.hpp"
#include "group/probe_group.hpp"
#include "measure.hpp"
#include "probe.hpp"
#include "relay/measure_relay.hpp"
#include "relay/probes.hpp"
#include "schemas/measure_schemas.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::bench {
namespace {

struct measurement {
    std::string_view set;  ///< `embedded` needs no server; the others are named to be run.
    std::string_view name;
    std::vector<figure> (*measure)(const setup&);
};

constexpr std::array measurements{
    measurement{"embedded", "drain", measure_drain},
    measurement{"embedded", "consume", measure_consume},
    measurement{"embedded", "latency", measure_latency},
    measurement{"embedded", "idle", measure_idle},
    measurement{"relay", "relay-drain", measure_relay_drain},
    measurement{"relay", "relay-latency", measure_relay_latency},
    measurement{"relay", "relay-writers", measure_relay_writers},
    measurement{"schemas", "schemas-drain", measure_schemas_drain},
    measurement{"group", "group-drain", measure_group_drain},
    measurement{"group", "group-shards", measure_group_shards},
    measurement{"group", "group-tip", measure_group_tip},
    measurement{"group", "group-start", measure_group_start},
};

bool is_wanted(const measurement& what, const std::vector<std::string>& names) {
    if (names.empty()) return what.set == "embedded";
    return std::ranges::any_of(names, [&](const auto& name) {
        return name == what.set || name == what.name;
    });
}

std::string known_names() {
    std::string names;
    for (const auto& what : measurements)
        names += fmt::format("{}{} (in {})", names.empty() ? "" : ", ", what.name, what.set);
    return names;
}

int run_probe(const std::vector<std::string>& arguments) {
    if (arguments.size() == 4 && arguments[1] == "drain")
        return probe_drain(arguments[2], arguments[3], {}) > 0 ? 0 : 1;
    if (arguments.size() == 3 && arguments[1] == "consume")
        return probe_consume(arguments[2], {}) > 0 ? 0 : 1;
    if (arguments.size() == 4 && arguments[1] == "kinesis")
        return probe_kinesis(arguments[2], static_cast<std::uint32_t>(std::stoul(arguments[3]))) > 0 ? 0 : 1;
    if (arguments.size() == 3 && arguments[1] == "postgres")
        return probe_postgres(servers_of_environment(), arguments[2]) > 0 ? 0 : 1;
    if (arguments.size() == 6 && arguments[1] == "kafka") {
        probe_kafka(
            servers_of_environment(),
            arguments[2],
            std::stoull(arguments[3]),
            std::stoull(arguments[4]),
            std::stoull(arguments[5])
        );
        return 0;
    }
    throw std::runtime_error(
        "usage: --probe drain OUTBOX STREAMS | consume STREAMS | postgres TABLE | kafka TOPIC ROWS KEYS "
        "BYTES | kinesis ENDPOINT SHARDS"
    );
}

int run(const std::vector<std::string>& arguments) {
    if (!arguments.empty() && arguments.front() == "--probe") return run_probe(arguments);
    setup with;
    with.self = std::filesystem::read_symlink("/proc/self/exe").string();
    std::vector<std::string> wanted;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const auto value = [&] {
            if (++i == arguments.size()) throw std::runtime_error(arguments[i - 1] + " needs a value");
            return arguments[i];
        };
        if (arguments[i] == "--millrace") {
            with.millrace = std::filesystem::absolute(value()).string();
        } else if (arguments[i] == "--rows") {
            with.data.rows = std::stoull(value());
        } else if (arguments[i] == "--rounds") {
            with.rounds = std::stoi(value());
        } else {
            wanted.push_back(arguments[i]);
        }
    }
    if (!std::filesystem::exists(with.millrace))
        throw std::runtime_error("there is no program to measure: give --millrace PATH, or run ./dev bench");
    std::vector<figure> figures;
    for (const auto& what : measurements) {
        if (!is_wanted(what, wanted)) continue;
        fmt::print(stderr, "measuring {}\n", what.name);
        for (auto& figure : what.measure(with))
            figures.push_back(std::move(figure));
    }
    if (figures.empty()) throw std::runtime_error("known measurements: " + known_names());
    fmt::print(
        "{} rows of {} B on {} keys, {} shards; medians of {} rounds, program and probe in turn\n\n{}",
        with.data.rows,
        with.data.value_bytes,
        with.data.keys,
        with.data.shards,
        with.rounds,
        as_table(figures)
    );
    return std::ranges::all_of(figures, &figure::met) ? 0 : 1;
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
    try {
        return millrace::bench::run({argv + 1, argv + argc});
    } catch (const std::exception& problem) {
        fmt::print(stderr, "millrace-bench: {}\n", problem.what());
        return 1;
    }
}
