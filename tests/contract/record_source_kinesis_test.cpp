#include "contract/kinesis_streams.hpp"
#include "contract/loop_host.hpp"
#include "contract/record_source_contract.hpp"
#include "kinesis_source.hpp"

#include <memory>

namespace millrace::test {
namespace {

class kinesis_source_world final : public source_world {
public:
    record_source& source() override { return source_; }
    bool run_until(const std::function<bool()>& condition) override { return loop_.run_until(condition); }
    void pass(milliseconds span) override { loop_.run_for(span); }

    void append(
        const std::optional<std::string>& key,
        const std::optional<std::string>& data,
        const std::vector<header>& headers
    ) override {
        const event one{.topic = "orders", .key = key, .value = data, .headers = headers};
        const auto put = stream_.admin.append({&one, 1});
        EXPECT_TRUE(put) << put.error().detail;
    }
    void split(const shard_id& shard) override {
        const auto done = stream_.admin.split(shard);
        EXPECT_TRUE(done) << done.error().detail;
    }
    void merge(const shard_id& lower, const shard_id& upper) override {
        const auto done = stream_.admin.merge(lower, upper);
        EXPECT_TRUE(done) << done.error().detail;
    }
    void trim(const shard_id& /*shard*/, std::size_t /*records*/) override {
        ADD_FAILURE() << "only time trims a stream of Kinesis";
    }
    milliseconds clock_step() const override { return milliseconds{1'000}; }

private:
    kinesis_test_stream stream_{2};
    loop_host loop_;
    kinesis_source source_{loop_, stream_.address, kinesis_api(stream_.address.endpoint)};
};

INSTANTIATE_TEST_SUITE_P(Kinesis, RecordSourceContract, testing::Values([] {
                             return std::make_unique<kinesis_source_world>();
                         }));

}  // namespace
}  // namespace millrace::test
