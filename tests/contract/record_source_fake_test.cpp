#include "contract/record_source_contract.hpp"
#include "fake_stream.hpp"
#include "scheduler.hpp"

#include <memory>

namespace millrace::test {
namespace {

class fake_source_world final : public source_world {
public:
    record_source& source() override { return source_; }
    bool run_until(const std::function<bool()>& condition) override {
        for (int steps = 0; steps < 100'000 && !condition(); ++steps) {
            if (!world_.step()) break;
        }
        return condition();
    }
    void pass(milliseconds span) override { world_.run_for(span); }

    void append(
        const std::optional<std::string>& key,
        const std::optional<std::string>& data,
        const std::vector<header>& headers
    ) override {
        stream_.append(key, data, headers);
    }
    void split(const shard_id& shard) override { EXPECT_TRUE(stream_.split(shard)); }
    void merge(const shard_id& lower, const shard_id& upper) override {
        EXPECT_TRUE(stream_.merge(lower, upper));
    }
    void trim(const shard_id& shard, std::size_t records) override { stream_.trim(shard, records); }

private:
    sim::scheduler world_;
    sim::rng random_{7};
    sim::sim_host host_{world_, random_};
    sim::faults calm_{};
    sim::fake_stream stream_{world_, random_, {.shards = 2}};
    sim::fake_record_source source_{stream_, world_, host_, random_, calm_};
};

const auto worlds = testing::Values([] { return std::make_unique<fake_source_world>(); });
INSTANTIATE_TEST_SUITE_P(Fake, RecordSourceContract, worlds);
INSTANTIATE_TEST_SUITE_P(Fake, FullRecordSourceContract, worlds);

}  // namespace
}  // namespace millrace::test
