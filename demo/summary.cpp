#include "summary.hpp"

#include "figures.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace millrace::demo {

namespace {

using std::chrono::milliseconds;

/// `2026-01-31T12:00:00.123Z` as a point of time; the epoch when it is something else.
wall_clock::time_point parse_time(const std::string& text) {
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    int hour = 0;
    int minute = 0;
    double second = 0;
    if (std::sscanf(text.c_str(), "%d-%u-%uT%d:%d:%lf", &year, &month, &day, &hour, &minute, &second) != 6)
        return {};
    using namespace std::chrono;
    const sys_days date{std::chrono::year{year} / std::chrono::month{month} / std::chrono::day{day}};
    return date + hours{hour} + minutes{minute} +
           duration_cast<wall_clock::duration>(duration<double>{second});
}

}  // namespace

follower::follower(std::filesystem::path deliveries, const application& writer)
    : deliveries_(std::move(deliveries)), writer_(writer) {}

void follower::read() {
    deliveries_.read([this](const std::string& text) { line(text); });
}

void follower::line(const std::string& text) {
    const auto number = check_.delivered(text);
    if (number == 0) return;
    const auto arrival = parse_time(std::string(boost::json::parse(text).at("arrival").get_string()));
    const auto since = [](wall_clock::time_point from, wall_clock::time_point to) {
        return std::max(milliseconds{0}, std::chrono::duration_cast<milliseconds>(to - from));
    };
    // A delivery can be seen here before the application's thread has noted the time of its commit.
    const auto noted = writer_.committed_at(number);
    const auto committed = noted == wall_clock::time_point{} ? arrival : noted;
    times_.in_outbox.push_back(since(committed, arrival));
    times_.in_stream.push_back(since(arrival, wall_clock::now()));
}

void follower::all_written() {
    for (std::uint64_t number = 1; number <= writer_.written(); ++number)
        check_.written(number);
}

std::string summary(const follower& seen, const usage& used, milliseconds writing, milliseconds whole) {
    const auto report = seen.check().report();
    const auto rate = static_cast<double>(report.delivered) * 1000.0 /
                      static_cast<double>(std::max<std::int64_t>(1, whole.count()));
    std::string text;
    text += fmt::format("  written          {:>10}\n", report.written);
    text += fmt::format("  delivered        {:>10}\n", report.delivered);
    text += fmt::format("  lost             {:>10}\n", report.lost);
    text += fmt::format("  out of order     {:>10}\n", report.out_of_order);
    text += fmt::format(
        "  delivered twice  {:>10}   ({} by the relay, {} by the workers)\n",
        report.published_twice + report.handed_twice,
        report.published_twice,
        report.handed_twice
    );
    text += fmt::format(
        "  rate             {:>10.0f}   events/s from the first commit to the last delivery\n", rate
    );
    for (const auto& [worker, count] : report.by_worker)
        text += fmt::format("  {:<16} {:>10}   deliveries\n", worker, count);
    text += "where the time went\n";
    text +=
        fmt::format("  the application wrote for {:.1f} s of {:.1f} s\n", seconds(writing), seconds(whole));
    text += fmt::format("  commit to stream:  {}\n", percentiles(seen.times().in_outbox));
    text += fmt::format("  stream to handler: {}\n", percentiles(seen.times().in_stream));
    text += fmt::format(
        "  relay {:.2f} CPU-s, {:.0f} MiB; workers {:.2f} CPU-s, {:.0f} MiB the largest\n",
        seconds(used.relay_cpu),
        static_cast<double>(used.relay_memory_kib) / 1024.0,
        seconds(used.workers_cpu),
        static_cast<double>(used.worker_memory_kib) / 1024.0
    );
    return text;
}

}  // namespace millrace::demo
