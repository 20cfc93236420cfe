#include "timed.hpp"

#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <ctime>
#include <stdexcept>

#include <fmt/format.h>

namespace millrace::bench {

run_figures timed(const command& what) {
    using seconds = std::chrono::duration<double>;
    const support::temporary_folder folder;
    const auto begin = std::chrono::steady_clock::now();
    support::process process{
        what, {.input = {}, .output = {}, .errors = folder.file("err"), .environment = {}}};
    const auto report = process.wait(std::chrono::minutes{10});
    const seconds wall = std::chrono::steady_clock::now() - begin;
    if (!report || report->status != 0) {
        throw std::runtime_error(
            fmt::format("`{}` failed: {}", fmt::join(what, " "), support::read_file(folder.file("err")))
        );
    }
    return {
        wall.count(), seconds{report->cpu}.count(), static_cast<double>(report->peak_memory_kib) / 1024.0};
}

double cpu_seconds(pid_t pid) {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0)
        throw std::runtime_error("a measured process has ended");
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

figure against(
    const std::string& what,
    const std::vector<double>& measured,
    const std::vector<double>& probe,
    wanted_ratio wanted
) {
    const auto rate = [](double per_second) { return fmt::format("{:.0f} k/s", per_second / 1000.0); };
    std::vector<double> ratios;
    for (std::size_t i = 0; i < measured.size(); ++i)
        ratios.push_back(measured[i] / probe[i]);
    const double ratio = median(ratios);
    return {
        what,
        rate(median(measured)),
        rate(median(probe)),
        fmt::format("{:.0f} %", ratio * 100),
        fmt::format("{:.0f} %", wanted.must * 100),
        fmt::format("{:.0f} %", wanted.aim * 100),
        ratio >= wanted.must};
}

figure memory(const std::string& what, double mib, double must, double aim) {
    return {
        what,
        fmt::format("{:.1f} MiB", mib),
        "",
        "",
        fmt::format("{:.0f} MiB", must),
        fmt::format("{:.0f} MiB", aim),
        mib <= must};
}

figure cost(const std::string& what, double cpu, std::uint64_t rows) {
    return {
        what,
        fmt::format("{:.2f} CPU-s a million", cpu * 1e6 / static_cast<double>(rows)),
        "",
        "",
        "",
        "",
        true};
}

figure milliseconds(const std::string& what, double value, double must, double aim) {
    return {
        what,
        fmt::format("{:.1f} ms", value),
        "",
        "",
        fmt::format("{:.0f} ms", must),
        aim > 0 ? fmt::format("{:.0f} ms", aim) : "",
        value <= must};
}

}  // namespace millrace::bench
