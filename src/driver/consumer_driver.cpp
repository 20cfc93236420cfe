#include "consumer_driver.hpp"

#include "assert.hpp"
#include "shard_driver.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace {

namespace {

/// Where the user says nothing, readers keep to what the stream allows.
shard_options keeping_to(const read_rates& allowed, shard_options options) {
    if (!options.reads_per_second) options.reads_per_second = allowed.reads_per_second;
    if (!options.read_bytes_per_second) options.read_bytes_per_second = allowed.bytes_per_second;
    return options;
}

}  // namespace

struct consumer_driver::impl {
    impl(
        host& on,
        record_source& from,
        record_handler& to,
        handler_pool& workers,
        dead_letter_sink* dead,
        shard_options with,
        std::optional<checkpoint_place> handler_writes
    )
        : loop(on),
          source(from),
          handler(to),
          pool(workers),
          dead_letters(dead),
          options(keeping_to(from.allowed(), std::move(with))),
          place(std::move(handler_writes)),
          memory(std::make_shared<read_memory>(
              loop,
              options.memory_bytes,
              options.reads_in_flight,
              [this](read_memory::member who) {
                  if (const auto found = by_member.find(who); found != by_member.end())
                      found->second->memory_turn();
              }
          )),
          failures(loop) {
        MILLRACE_ASSERT(options.on_failure != failure_policy::dead_letter || dead_letters != nullptr);
    }

    ~impl() {
        if (leases) source.watch({});
        memory->close();
    }

    impl(const impl&) = delete;
    impl& operator=(const impl&) = delete;

    void attach(std::unique_ptr<shard_leases> with) {
        leases = std::move(with);
        source.watch(alive.guard([this] {
            for (const auto& [name, shard] : shards)
                shard->source_changed();
        }));
    }

    void granted(const lease_grant& grant);
    void sweep();
    void check_gap(const lease_grant& grant);

    /// The shard under its present lease; null when there is none.
    [[nodiscard]] shard_driver* find(const shard_id& shard) const {
        const auto found = shards.find(shard);
        return found == shards.end() || found->second->ended() ? nullptr : found->second.get();
    }

    host& loop;
    record_source& source;
    record_handler& handler;
    handler_pool& pool;
    dead_letter_sink* dead_letters;
    shard_options options;
    std::optional<checkpoint_place> place;
    std::unique_ptr<shard_leases> leases;
    std::shared_ptr<read_memory> memory;
    consumer_counters counters;
    paced_log failures;
    std::function<void(const error&)> on_failed;
    std::map<shard_id, std::unique_ptr<shard_driver>> shards;
    std::vector<std::unique_ptr<shard_driver>> retiring;  // of earlier leases, a call still under way
    std::unordered_map<read_memory::member, shard_driver*> by_member;
    lifetime alive;
};

void consumer_driver::impl::granted(const lease_grant& grant) {
    MILLRACE_ASSERT(leases != nullptr);
    if (auto* earlier = find(grant.shard))
        earlier->lost({errc::not_owner, retry_advice::never, false, "granted anew under another epoch"});
    if (const auto found = shards.find(grant.shard); found != shards.end()) {
        retiring.push_back(std::move(found->second));
        shards.erase(found);
    }
    const bool held_back = std::any_of(retiring.begin(), retiring.end(), [&](const auto& r) {
        return r->shard() == grant.shard && !r->over();
    });
    const shard_surroundings around{
        loop,
        source,
        handler,
        pool,
        dead_letters,
        options,
        place,
        *leases,
        *memory,
        counters,
        failures,
        alive.guard([this] { sweep(); })};
    auto made = std::make_unique<shard_driver>(around, grant);
    auto& shard = *shards.emplace(grant.shard, std::move(made)).first->second;
    by_member.emplace(shard.memory_member(), &shard);
    shard.start(held_back);
    check_gap(grant);
}

void consumer_driver::impl::sweep() {
    const auto drop = [this](const shard_driver& shard) {
        if (shard.over()) by_member.erase(shard.memory_member());
        return shard.over();
    };
    std::erase_if(shards, [&](const auto& s) { return drop(*s.second); });
    std::erase_if(retiring, [&](const auto& s) { return drop(*s); });
    for (const auto& held : shards) {
        const bool still = std::any_of(retiring.begin(), retiring.end(), [&](const auto& r) {
            return r->shard() == held.first;
        });
        if (!still) held.second->call_freed();
    }
}

void consumer_driver::impl::check_gap(const lease_grant& grant) {
    const auto stream = leases->stream();
    if (!grant.checkpoint || !stream || !stream->retention) return;
    if (grant.checkpoint->arrival < stream->now - *stream->retention) find(grant.shard)->possible_gap();
}

consumer_driver::consumer_driver(
    host& loop,
    record_source& source,
    record_handler& handler,
    handler_pool& pool,
    dead_letter_sink* dead_letters,
    shard_options options,
    std::optional<checkpoint_place> place
)
    : impl_(std::make_unique<impl>(
          loop, source, handler, pool, dead_letters, std::move(options), std::move(place)
      )) {}

consumer_driver::~consumer_driver() = default;

void consumer_driver::attach(std::unique_ptr<shard_leases> leases) {
    impl_->attach(std::move(leases));
}

bool consumer_driver::idle() const {
    const auto& shards = impl_->shards;
    return impl_->retiring.empty() &&
           std::all_of(shards.begin(), shards.end(), [](const auto& s) { return s.second->idle(); });
}

std::optional<error> consumer_driver::idle_but_damaged() const {
    if (!impl_->retiring.empty()) return std::nullopt;
    const error* first = nullptr;
    for (const auto& [name, shard] : impl_->shards) {
        const auto* damage = shard->damage();
        if (damage == nullptr && !shard->idle()) return std::nullopt;
        if (first == nullptr) first = damage;
    }
    return first == nullptr ? std::nullopt : std::optional(*first);
}

std::optional<error> consumer_driver::trouble() const {
    for (const auto& [name, shard] : impl_->shards)
        if (auto why = shard->trouble()) return why;
    return std::nullopt;
}

consumer_counters consumer_driver::counters() const {
    auto counters = impl_->counters;
    counters.bytes_in_memory = impl_->memory->in_use();
    return counters;
}

std::vector<shard_progress> consumer_driver::progress() const {
    std::vector<shard_progress> all;
    all.reserve(impl_->shards.size());
    for (const auto& held : impl_->shards)
        if (!held.second->ended()) all.push_back(held.second->progress());
    return all;
}

void consumer_driver::on_failed(std::function<void(const error&)> what) {
    impl_->on_failed = std::move(what);
}

void consumer_driver::granted(const lease_grant& grant) {
    impl_->granted(grant);
}

void consumer_driver::revoke(const shard_id& shard) {
    if (auto* held = impl_->find(shard)) held->revoke();
}

void consumer_driver::lost(const shard_id& shard, const error& why) {
    if (auto* held = impl_->find(shard)) held->lost(why);
}

void consumer_driver::membership(std::size_t index, std::size_t total) {
    auto& log = impl_->loop.log();
    if (!log.enabled(log_level::info)) return;
    log.write(
        log_level::info,
        "group.membership",
        {{"index", std::to_string(index)}, {"total", std::to_string(total)}}
    );
}

void consumer_driver::failed(const error& why) {
    if (impl_->on_failed) std::exchange(impl_->on_failed, nullptr)(why);
}

}  // namespace millrace
