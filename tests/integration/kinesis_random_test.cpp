// Seeded runs of several workers on the stand-in of the Kinesis API with all its faults, resharding, restarts
// and handlers that fail: nothing lost, per key in order, checkpoints never back, children behind their
// parents.

#include "kinesis_world.hpp"

#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <random>

#include <fmt/format.h>

namespace millrace::test {
namespace {

/// Watches all workers of a run, and the stream. Thread-safe.
class kinesis_oracle {
public:
    void wrote(const std::string& shard, const std::string& sequence, const std::string& data) {
        const std::lock_guard lock(mutex_);
        const auto at = *sequence_number::parse(sequence);
        shards_[shard].written[at] = {data, false, false};
    }
    void born(const std::string& shard, std::vector<std::string> parents) {
        const std::lock_guard lock(mutex_);
        shards_[shard].parents = std::move(parents);
    }

    void granted(const shard_grant& grant) {
        const std::lock_guard lock(mutex_);
        auto& shard = shards_[grant.shard.value()];
        if (grant.epoch.value() <= shard.epoch)
            fault("the epoch of " + grant.shard.value() + " did not grow");
        shard.epoch = grant.epoch.value();
        const auto checkpoint = grant.checkpoint ? grant.checkpoint->sequence : sequence_number{};
        if (checkpoint < shard.checkpoint) fault("the checkpoint of " + grant.shard.value() + " went back");
        shard.checkpoint = checkpoint;
        for (const auto& [at, record] : shard.written) {
            if (at <= checkpoint && !record.acknowledged) fault("a checkpoint passed " + record.data);
        }
    }
    /// The handler takes the record up.
    void handling(const std::string& name, const record& what) {
        const std::lock_guard lock(mutex_);
        auto& shard = shards_[name];
        const auto found = shard.written.find(what.position.sequence);
        if (found == shard.written.end() || found->second.data != *what.data)
            return fault(fmt::format("{} was never written to {}", *what.data, name));
        if (std::exchange(found->second.handled, true)) return;
        ++handled_;
        changed_.notify_all();
        int number = 0;
        std::from_chars(what.data->data(), what.data->data() + what.data->size(), number);
        auto& last = last_of_key_[std::string(*what.key)];
        if (number < last) fault(fmt::format("{} of {} came behind {}", number, *what.key, last));
        last = number;
        const auto missing = unhandled_above(shard);
        if (!missing.empty())
            fault(fmt::format("{} of {} came before {} of an ancestor", *what.data, name, missing));
    }
    void acknowledging(const std::string& name, const record& what) {
        const std::lock_guard lock(mutex_);
        const auto found = shards_[name].written.find(what.position.sequence);
        if (found != shards_[name].written.end()) found->second.acknowledged = true;
    }
    /// Until so many records were handled; false when that lasts too long.
    [[nodiscard]] bool wait(std::size_t records, std::chrono::milliseconds limit) const {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, limit, [&] { return handled_ >= records; });
    }
    [[nodiscard]] std::string report() const {
        const std::lock_guard lock(mutex_);
        std::string text = fault_;
        for (const auto& [name, shard] : shards_) {
            for (const auto& [at, record] : shard.written) {
                if (!record.handled) return text + fmt::format(" {} of {} is lost", record.data, name);
            }
        }
        return text;
    }

private:
    struct written_record {
        std::string data;
        bool handled{false};
        bool acknowledged{false};
    };
    struct shard_state {
        std::map<sequence_number, written_record> written;
        std::vector<std::string> parents;
        std::uint64_t epoch{0};
        sequence_number checkpoint;
    };
    /// A record of the shard's ancestors that nobody took up yet; empty when there is none.
    std::string unhandled_above(const shard_state& shard) {
        for (const auto& name : shard.parents) {
            const auto& parent = shards_[name];
            for (const auto& [at, record] : parent.written) {
                if (!record.handled) return record.data;
            }
            if (auto above = unhandled_above(parent); !above.empty()) return above;
        }
        return {};
    }
    void fault(const std::string& what) {
        if (fault_.empty()) fault_ = what;
    }

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::map<std::string, shard_state> shards_;
    std::map<std::string, int> last_of_key_;
    std::size_t handled_{0};
    std::string fault_;
};

/// Fails now and then, and acknowledges in any order, some of it after a while.
class wayward_handler : public record_handler {
public:
    wayward_handler(kinesis_oracle& oracle, std::uint64_t seed) : oracle_(oracle), random_(seed) {}

    void assigned(const shard_grant& grant) override { oracle_.granted(grant); }

    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        const auto records = batch->records();
        const auto fails_at = below(6) == 0 ? below(records.size()) : records.size();
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < fails_at; ++i) {
            oracle_.handling(batch->shard().value(), records[i]);
            order.push_back(i);
        }
        if (below(3) == 0) std::this_thread::sleep_for(milliseconds{below(20)});
        {
            const std::lock_guard lock(mutex_);
            std::ranges::shuffle(order, random_);
        }
        for (const auto i : order) {
            oracle_.acknowledging(batch->shard().value(), records[i]);
            how.acknowledge.one(i);
        }
        if (fails_at < records.size()) return fail(errc::internal, "a whim");
        return handled::later;
    }

private:
    std::size_t below(std::size_t limit) {
        const std::lock_guard lock(mutex_);
        return random_() % limit;
    }

    kinesis_oracle& oracle_;
    std::mutex mutex_;
    std::mt19937_64 random_;
};

/// What the workers of a run said, shown when it fails. Thread-safe.
class run_log : public log_sink {
public:
    [[nodiscard]] bool enabled(log_level level) const noexcept override { return level >= log_level::info; }
    void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) override {
        std::string line = fmt::format("{} {}", static_cast<int>(level), event);
        for (const auto& field : fields)
            line += fmt::format(" {}={}", field.name, field.value);
        const std::lock_guard lock(mutex_);
        lines_.push_back(std::move(line));
    }
    [[nodiscard]] std::string text() const {
        const std::lock_guard lock(mutex_);
        return fmt::format("{}", fmt::join(lines_, "\n"));
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

class random_run {
public:
    explicit random_run(std::uint64_t seed)
        : seed_(seed), random_(seed), world_(static_cast<std::uint32_t>(1 + below(3)), options()) {}

    void run() {
        learn_shards();
        add_faults();
        std::vector<std::unique_ptr<worker>> workers;
        for (std::size_t i = 0; i < 1 + below(3); ++i)
            workers.push_back(std::make_unique<worker>(*this, i));
        for (int step = 0; step < 40; ++step) {
            write(below(12));
            if (below(12) == 0) reshard();
            if (below(15) == 0) {  // one is stopped, and starts again
                auto& chosen = workers[below(workers.size())];
                const auto ended = chosen->running.stop();
                EXPECT_TRUE(ended) << named() << ended.error().detail;
                chosen.reset();
                chosen = std::make_unique<worker>(*this, below(1'000'000));
            }
            std::this_thread::sleep_for(milliseconds{10 + below(40)});
        }
        world_.fake.with([](auto in) {
            in.faults.clear();
            in.model.late_visible = 0ms;
        });
        EXPECT_TRUE(oracle_.wait(records_, 40s)) << named();
        for (const auto& one : workers) {
            const auto ended = one->running.stop();
            EXPECT_TRUE(ended) << named() << ended.error().detail;
        }
        EXPECT_EQ(oracle_.report(), "") << named() << log_.text();
        faults_ = world_.fake.faults_drawn();
    }
    [[nodiscard]] std::uint64_t faults() const { return faults_; }

private:
    struct worker {
        worker(random_run& of, std::size_t number)
            : handler(of.oracle_, of.random_()), running(of.settings(number), handler) {}
        wayward_handler handler;
        background<consumer> running;
    };

    std::size_t below(std::size_t limit) { return random_() % limit; }
    [[nodiscard]] std::string named() const { return fmt::format("seed {}: ", seed_); }

    kinesis_fake::server_options options() {
        kinesis_fake::server_options made;
        made.seed = random_();
        made.speaks_cbor = below(4) != 0;
        made.clock_skew = std::array<milliseconds, 4>{0ms, 0ms, -7min, 7min}[below(4)];
        made.limits.end_with_records = below(2) == 0;
        made.limits.page_shards = 1 + below(3);
        made.limits.iterator_life = milliseconds{300 + below(2'000)};
        if (below(2) == 0) made.limits.reads = {};  // otherwise as AWS has it
        return made;
    }

    consumer_settings settings(std::size_t number) {
        auto made = world_.settings("w" + std::to_string(number));
        made.log = &log_;
        made.reading.read_records = 20 + below(40);  // five reads a second must do
        made.reading.batch_records = 1 + below(10);
        return made;
    }

    void add_faults() {
        using enum fault;
        for (const auto what :
             {throttled,
              internal_failure,
              overloaded,
              expired_iterator,
              expired_token,
              kms_throttling,
              failure_after_effect,
              cut,
              garbled,
              wrong_checksum,
              silent,
              empty_page,
              short_page,
              childless_end,
              slow}) {
            if (below(2) == 0) continue;
            kinesis_fake::fault_rule rule{
                .what = what, .per_mille = static_cast<std::uint32_t>(10 + below(50))};
            if (what == expired_iterator) rule.operation = "GetRecords";
            if (what == expired_token) rule.operation = "ListShards";
            if (what == slow) rule.delay = milliseconds{below(300)};
            world_.add(rule);
        }
    }

    void learn_shards() {
        world_.fake.with([&](auto in) {
            for (const auto& shard : in.model.find("orders").value()->shards) {
                std::vector<std::string> parents;
                for (const auto& parent : {shard.parent, shard.other_parent}) {
                    if (parent) parents.push_back(shard_name(*parent));
                }
                oracle_.born(shard.id, std::move(parents));
            }
        });
    }

    void write(std::size_t records) {
        world_.fake.with([&](auto in) {
            in.model.late_visible = below(3) == 0 ? milliseconds{below(200)} : 0ms;
            for (std::size_t i = 0; i < records; ++i) {
                const auto key = fmt::format("key-{}", below(8));
                const auto data = fmt::format("{} of {}", ++numbers_[key], key);
                const auto done = in.model.append("orders", key, data);
                oracle_.wrote(done.shard, done.sequence, data);
                ++records_;
            }
        });
    }

    void reshard() {
        world_.fake.with([&](auto in) {
            std::uint32_t open = 0;
            for (const auto& shard : in.model.find("orders").value()->shards)
                open += shard.closed ? 0 : 1;
            const auto wanted =
                std::clamp<std::uint32_t>(static_cast<std::uint32_t>((open + 1) / 2 + below(open + 1)), 1, 5);
            (void)in.model.resize("orders", wanted);  // out of reach of one step: it stays as it is
        });
        learn_shards();
    }

    const std::uint64_t seed_;
    std::mt19937_64 random_;
    kinesis_world world_;
    kinesis_oracle oracle_;
    run_log log_;
    std::map<std::string, int> numbers_;
    std::size_t records_{0};
    std::uint64_t faults_{0};
};

/// Seeds from the first to the last: `MILLRACE_KINESIS_SEEDS` is `LAST` or `FIRST-LAST`.
std::pair<std::uint64_t, std::uint64_t> seeds_wanted() {
    const char* given = std::getenv("MILLRACE_KINESIS_SEEDS");
    if (given == nullptr) return {1, 40};
    const std::string text(given);
    const auto dash = text.find('-');
    if (dash == std::string::npos) return {1, std::stoull(text)};
    return {std::stoull(text), std::stoull(text.substr(dash + 1))};
}

TEST(KinesisRandomRuns, LoseNothingKeepTheOrderOfKeysAndNeverMoveACheckpointBack) {
    constexpr std::uint64_t at_once = 20;
    const auto [first, last] = seeds_wanted();
    std::atomic<std::uint64_t> next{first};
    std::atomic<std::uint64_t> faults{0};
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < std::min(at_once, last - first + 1); ++i) {
        threads.emplace_back([&, last = last] {
            for (auto seed = next++; seed <= last && !testing::Test::HasFailure(); seed = next++) {
                random_run one(seed);
                one.run();
                faults += one.faults();
            }
        });
    }
    threads.clear();
    EXPECT_GT(faults, last - first) << "there must be faults";
}

}  // namespace
}  // namespace millrace::test
