#include "contract/loop_host.hpp"
#include "contract/record_source_contract.hpp"
#include "local_admin.hpp"
#include "local_source.hpp"
#include "support/temporary_folder.hpp"

#include <atomic>
#include <memory>

namespace millrace::test {
namespace {

class local_source_world final : public source_world {
public:
    local_source_world() {
        EXPECT_TRUE(admin_.create_stream("orders", 2));
        source_ = std::make_unique<local_source>(
            loop_, file_, "orders", local_source_options{.clock = [this] { return now(); }}
        );
    }

    record_source& source() override { return *source_; }
    bool run_until(const std::function<bool()>& condition) override { return loop_.run_until(condition); }
    void pass(milliseconds span) override { clock_ += span.count(); }

    void append(
        const std::optional<std::string>& key,
        const std::optional<std::string>& data,
        const std::vector<header>& headers
    ) override {
        const event one{.topic = "orders", .key = key, .value = data, .headers = headers};
        const auto put = admin_.put("orders", {&one, 1});
        EXPECT_TRUE(put) << put.error().detail;
    }
    void split(const shard_id& shard) override { EXPECT_TRUE(admin_.split("orders", shard)); }
    void merge(const shard_id& lower, const shard_id& upper) override {
        EXPECT_TRUE(admin_.merge("orders", lower, upper));
    }
    void trim(const shard_id& shard, std::size_t records) override {
        const auto cursor = loop_.await<read_cursor>([&](auto done) {
            source_->open(shard, from::trim_horizon{}, std::move(done));
        });
        const auto reply = loop_.await<read_reply>([&](auto done) {
            source_->read(shard, *cursor, {.records_max = records}, std::move(done));
        });
        const auto through = reply->records->records().back().position.sequence.low64();
        EXPECT_TRUE(admin_.trim("orders", {.through_sequence = through}));
    }

private:
    [[nodiscard]] wall_time now() const { return wall_time{milliseconds{clock_.load()}}; }

    std::atomic<std::int64_t> clock_{1'700'000'000'000};
    support::temporary_folder directory_;
    std::string file_{directory_.file("streams.db")};
    loop_host loop_;
    local_admin admin_{
        local_admin::open_or_create(file_, local_admin_options{.clock = [this] { return now(); }}).value()};
    std::unique_ptr<local_source> source_;
};

const auto worlds = testing::Values([] { return std::make_unique<local_source_world>(); });
INSTANTIATE_TEST_SUITE_P(Local, RecordSourceContract, worlds);
INSTANTIATE_TEST_SUITE_P(Local, FullRecordSourceContract, worlds);

}  // namespace
}  // namespace millrace::test
