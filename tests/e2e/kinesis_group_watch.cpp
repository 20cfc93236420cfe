#include "kinesis_group_watch.hpp"

#include "support/process.hpp"

#include <utility>

namespace millrace::e2e {

namespace {

using namespace std::chrono_literals;

constexpr auto look_every = 5ms;
constexpr int looks_of_a_sample = 8;

}  // namespace

group_watch::group_watch(std::filesystem::path deliveries, group_state& state)
    : deliveries_(std::move(deliveries)), state_(state), thread_([this] { watch(); }) {}

group_watch::~group_watch() {
    stops_ = true;
    thread_.join();
}

void group_watch::watch() {
    for (int looks = 0; !stops_; ++looks) {
        const auto rows = looks % looks_of_a_sample == 0 ? state_.sample() : std::nullopt;
        {
            const std::lock_guard lock(mutex_);
            read_lines();  // behind the sample: what its checkpoints cover was printed before
            if (rows) check_.sample(*rows);
        }
        std::this_thread::sleep_for(look_every);
    }
}

void group_watch::read_lines() {
    const auto at = clock::now();
    deliveries_.read([&](const std::string& text) {
        const auto seen =
            check_.line(text, std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()));
        if (!seen) return;
        auto& now = stays_[seen->shard];
        if (now.epoch != seen->epoch)
            now = {.worker = seen->worker, .epoch = seen->epoch, .first = at, .last = at};
        now.longest_silence = std::max(now.longest_silence, at - now.last);
        now.last = at;
    });
}

group_watch::moment group_watch::now() {
    const std::lock_guard lock(mutex_);
    read_lines();
    return check_.now();
}

bool group_watch::drained(std::chrono::milliseconds quiet_limit) {
    const auto counts = [this] {
        return with([](const auto& check) { return std::pair(check.delivered(), check.put_so_far()); });
    };
    auto before = counts();
    for (auto progress = clock::now(); clock::now() - progress < quiet_limit;) {
        std::this_thread::sleep_for(look_every);
        const auto seen = counts();
        if (seen.first >= seen.second) return true;
        if (seen != before) progress = clock::now();
        before = seen;
    }
    return false;
}

std::map<std::string, group_watch::stay> group_watch::stays() {
    const std::lock_guard lock(mutex_);
    read_lines();
    return stays_;
}

}  // namespace millrace::e2e
