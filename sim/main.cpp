#include "world.hpp"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace {

using millrace::sim::run_report;
using millrace::sim::run_seed;

struct arguments {
    std::uint64_t seeds{2'000};
    std::uint64_t from{1};
    bool trace{false};
    bool help{false};
};

bool parse_number(std::string_view text, std::uint64_t& value) {
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    return parsed.ec == std::errc{} && parsed.ptr == end;
}

bool parse(int count, char** values, arguments& out) {
    for (int i = 1; i < count; ++i) {
        const std::string_view name = values[i];
        if (name == "--trace") {
            out.trace = true;
        } else if (name == "--help") {
            out.help = true;
        } else if ((name == "--seeds" || name == "--from") && i + 1 < count) {
            if (!parse_number(values[++i], name == "--seeds" ? out.seeds : out.from)) return false;
        } else {
            return false;
        }
    }
    return out.seeds > 0;  // none would look like a success
}

void print_failure(std::uint64_t seed, const run_report& report) {
    for (const auto& line : report.lines)
        fmt::print("{}\n", line);
    for (const auto& failure : report.failures)
        fmt::print("seed {}: {}\n", seed, failure);
    fmt::print("replay with: ./dev sim --seeds 1 --from {}\n\n", seed);
}

}  // namespace

int main(int argc, char** argv) {
    arguments args;
    const bool understood = parse(argc, argv, args);
    if (!understood || args.help) {
        fmt::print(
            understood ? stdout : stderr,
            "usage: millrace-sim [--seeds N] [--from S] [--trace]\n"
            "Runs N simulated worlds, at least one, from seed S on. A seed that breaks a promise is traced; "
            "--trace traces all.\n"
        );
        return understood ? 0 : 2;
    }
    // A failing seed is run again with its trace; of the first few only, so that the output stays readable.
    constexpr std::uint64_t traced_max = 3;
    run_report total;
    std::uint64_t failed = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (auto seed = args.from; seed < args.from + args.seeds; ++seed) {
        auto report = run_seed(seed, args.trace);
        if (!report.failures.empty()) {
            if (++failed <= traced_max && !args.trace) report = run_seed(seed, true);
            print_failure(seed, report);
        } else if (args.trace) {
            for (const auto& line : report.lines)
                fmt::print("{}\n", line);
        }
        total.rows += report.rows;
        total.handed += report.handed;
        total.repeated += report.repeated;
        total.why += report.why;
        total.crashes += report.crashes;
        total.pauses += report.pauses;
        total.reshards += report.reshards;
        total.steps += report.steps;
    }
    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    fmt::print(
        "sim: {} seeds from {}, {} failed; {} events, {} handled, {} repeated (retry {}, crash {}, lost "
        "lease "
        "{}, handed back {}, operator {}); {} crashes, {} pauses, "
        "{} splits and merges; {} steps in {:.1f} s\n",
        args.seeds,
        args.from,
        failed,
        total.rows,
        total.handed,
        total.repeated,
        total.why.after_retry,
        total.why.after_crash,
        total.why.after_loss,
        total.why.after_release,
        total.why.after_operator,
        total.crashes,
        total.pauses,
        total.reshards,
        total.steps,
        seconds
    );
    return failed == 0 ? 0 : 1;
}
