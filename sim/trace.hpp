/// What happened in a run, for people: time, actor, what. Costs nothing while it is off.
#pragma once

#include "scheduler.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::sim {

class trace {
public:
    trace(const scheduler& world, bool on) : world_(world), on_(on) {}

    template <class... A>
    void say(std::string_view actor, fmt::format_string<A...> text, A&&... args) {
        if (on_) add(actor, fmt::format(text, std::forward<A>(args)...));
    }

    [[nodiscard]] bool on() const noexcept { return on_; }
    [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

private:
    void add(std::string_view actor, std::string_view what) {
        const auto at = static_cast<double>(world_.now().count()) / 1e9;
        lines_.push_back(fmt::format("{:10.4f}  {:<12} {}", at, actor, what));
    }

    const scheduler& world_;
    bool on_;
    std::vector<std::string> lines_;
};

/// The promises that were broken. A run ends at the first.
class verdicts {
public:
    explicit verdicts(trace& t) : trace_(t) {}

    template <class... A>
    void broken(fmt::format_string<A...> text, A&&... args) {
        auto what = fmt::format(text, std::forward<A>(args)...);
        trace_.say("ORACLE", "{}", what);
        if (failures_.size() < 20) failures_.push_back(std::move(what));
    }

    [[nodiscard]] const std::vector<std::string>& failures() const noexcept { return failures_; }
    [[nodiscard]] bool clean() const noexcept { return failures_.empty(); }

private:
    trace& trace_;
    std::vector<std::string> failures_;
};

}  // namespace millrace::sim
