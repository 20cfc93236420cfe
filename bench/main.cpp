// `./dev bench [NAME ...]`: measures and prints one table. Also runs the probes, as processes of their own.

#include "measure.hpp"
#include "probe.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::bench {
namespace {

using measurement = std::function<std::vector<figure>(const setup&)>;

const std::vector<std::pair<std::string, measurement>>& measurements() {
    static const std::vector<std::pair<std::string, measurement>> all{
        {"drain", measure_drain},
        {"consume", measure_consume},
        {"latency", measure_latency},
        {"idle", measure_idle}};
    return all;
}

int run_probe(const std::vector<std::string>& arguments) {
    if (arguments.size() == 4 && arguments[1] == "drain")
        return probe_drain(arguments[2], arguments[3], {}) > 0 ? 0 : 1;
    if (arguments.size() == 3 && arguments[1] == "consume")
        return probe_consume(arguments[2], {}) > 0 ? 0 : 1;
    throw std::runtime_error("usage: --probe drain OUTBOX STREAMS | --probe consume STREAMS");
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
    std::vector<figure> figures;
    for (const auto& [name, measure] : measurements()) {
        if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
        fmt::print(stderr, "measuring {}\n", name);
        for (auto& figure : measure(with))
            figures.push_back(std::move(figure));
    }
    if (figures.empty()) throw std::runtime_error("known measurements: drain, consume, latency, idle");
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
