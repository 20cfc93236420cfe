#include "kinesis_load.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace millrace::e2e {

namespace {

using namespace std::chrono_literals;

// The server may come to nothing else for long on a busy machine, and what is put twice would be told as a
// fault of the group.
constexpr milliseconds patience{120'000};

template <class T>
T must(result<T> done) {
    if (!done) throw std::runtime_error(done.error().detail);
    if constexpr (!std::is_void_v<T>) return std::move(*done);
}

}  // namespace

kinesis_load::kinesis_load(kinesis_address where, load_options options)
    : where_(std::move(where)),
      options_(options),
      changes_(where_, test::kinesis_api(where_.endpoint, kinesis_account), 20s),
      puts_(where_, test::kinesis_api(where_.endpoint, kinesis_account, patience), 20s, patience),
      numbers_(options_.keys) {
    must(changes_.create(options_.shards));
}

kinesis_load::~kinesis_load() {
    stop();
}

std::string kinesis_load::url(std::uint16_t port) const {
    return "kinesis://" + where_.region + "/" + where_.stream +
           "?endpoint=http://127.0.0.1:" + std::to_string(port);
}

void kinesis_load::start(group_watch& watch) {
    stops_ = false;
    thread_ = std::thread([this, &watch] { fill(watch); });
}

void kinesis_load::stop() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
}

void kinesis_load::put(group_watch& watch, std::size_t calls) {
    while (calls-- > 0)
        if (!call(watch)) throw std::runtime_error(failure_);
}

void kinesis_load::fill(group_watch& watch) {
    auto next = std::chrono::steady_clock::now();
    while (!stops_ && call(watch)) {
        next += options_.between_calls;
        std::this_thread::sleep_until(next);
    }
}

bool kinesis_load::call(group_watch& watch) {
    std::vector<event> events;
    std::vector<std::pair<std::string, std::uint64_t>> names;
    for (std::size_t i = 0; i < options_.records_of_a_call; ++i) {
        const auto key = next_key_++ % options_.keys;
        names.emplace_back("key-" + std::to_string(key), ++numbers_[key]);
        event one;
        one.key = names.back().first;
        one.value = std::to_string(names.back().second);
        events.push_back(std::move(one));
    }
    const auto positions = puts_.append(events);
    if (!positions) {
        failure_ = positions.error().detail;
        failed_ = true;
        return false;
    }
    watch.with([&](auto& check) {
        for (std::size_t i = 0; i < events.size(); ++i) {
            const auto& [shard, sequence] = (*positions)[i];
            check.put(shard.value(), sequence, names[i].first, names[i].second);
        }
    });
    return true;
}

std::vector<shard_facts> kinesis_load::shards() {
    return must(changes_.describe()).shards;
}

std::vector<shard_facts> kinesis_load::open_shards() {
    auto all = shards();
    std::erase_if(all, [](const auto& shard) { return shard.closed; });
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.range < b.range; });
    return all;
}

void kinesis_load::tell(group_watch& watch) {
    for (const auto& shard : shards()) {
        std::vector<std::string> parents;
        for (const auto& parent : shard.parents)
            parents.push_back(parent.value());
        watch.with([&](auto& check) { check.shard(shard.shard.value(), parents); });
    }
}

bool kinesis_load::split(group_watch& watch, std::mt19937& random) {
    const auto open = open_shards();
    if (open.size() >= options_.shards_max) return false;
    must(changes_.split(open[random() % open.size()].shard));
    tell(watch);
    return true;
}

bool kinesis_load::merge(group_watch& watch, std::mt19937& random) {
    const auto open = open_shards();
    if (open.size() <= 2) return false;
    const auto first = random() % (open.size() - 1);
    must(changes_.merge(open[first].shard, open[first + 1].shard));
    tell(watch);
    return true;
}

/// To another number, not more than twice or less than half.
bool kinesis_load::scale(group_watch& watch, std::mt19937& random) {
    const auto open = static_cast<std::uint32_t>(open_shards().size());
    const auto least = std::max<std::uint32_t>(2, (open + 1) / 2);
    const auto most = std::min(options_.shards_max, 2 * open);
    auto target = least + static_cast<std::uint32_t>(random()) % (most - least + 1);
    if (target == open) target = open < most ? open + 1 : open - 1;
    must(changes_.scale(target));
    tell(watch);
    return true;
}

}  // namespace millrace::e2e
