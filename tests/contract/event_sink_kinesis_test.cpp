#include "contract/event_sink_contract.hpp"
#include "contract/kinesis_streams.hpp"
#include "contract/loop_host.hpp"
#include "kinesis_sink.hpp"
#include "kinesis_source.hpp"

#include <cctype>
#include <map>
#include <memory>
#include <random>
#include <string>

namespace millrace::test {
namespace {

/// An access key of 12 digits is an account of its own, with streams of its own.
std::string some_account() {
    static std::mt19937_64 random{std::random_device{}()};
    return std::to_string(100'000'000'000 + random() % 900'000'000'000);
}

class kinesis_sink_world final : public sink_world {
public:
    kinesis_sink_world() {
        create_topic("orders");
        create_topic("payments");
    }
    ~kinesis_sink_world() override {
        for (auto& [name, admin] : streams_)
            EXPECT_TRUE(admin->remove());
    }

    event_sink& sink() override { return sink_; }
    bool run_until(const std::function<bool()>& condition) override { return loop_.run_until(condition); }
    void create_topic(const std::string& name) override {
        auto admin = std::make_unique<kinesis_admin>(
            address_of(name), kinesis_api(endpoint_, account_), milliseconds{10'000}
        );
        const auto made = admin->create(1);
        EXPECT_TRUE(made) << made.error().detail;
        streams_.emplace(name, std::move(admin));
    }
    std::string poison() const override { return std::string(2'000, 'x'); }
    bool goes_on_with_other_lanes() const override { return true; }

    std::vector<event> published(const std::string& topic) override {
        kinesis_source source(loop_, address_of(topic), kinesis_api(endpoint_, account_));
        const shard_id shard{"shardId-000000000000"};
        auto cursor = loop_.await<read_cursor>([&](auto done) {
            source.open(shard, from::trim_horizon{}, std::move(done));
        });
        std::vector<event> events;
        for (bool more = cursor.has_value(); more;) {
            const auto reply =
                loop_.await<read_reply>([&](auto done) { source.read(shard, *cursor, {}, std::move(done)); });
            EXPECT_TRUE(reply) << reply.error().detail;
            more = reply && !reply->records->records().empty() && reply->next;
            if (!more) break;
            for (const auto& r : reply->records->records())
                events.push_back({.key = std::string(*r.key), .value = std::string(*r.data)});
            cursor = *reply->next;
        }
        return events;
    }

private:
    kinesis_address address_of(const std::string& stream) const {
        return {.region = "eu-west-1", .stream = stream, .endpoint = endpoint_};
    }

    const std::string endpoint_{support::services().kinesis_endpoint};
    const std::string account_{some_account()};
    std::map<std::string, std::unique_ptr<kinesis_admin>> streams_;
    loop_host loop_;
    kinesis_sink sink_{
        loop_,
        address_of(""),
        kinesis_api(endpoint_, account_),
        {.losses = {.record_bytes_max = 1'500}, .requests_in_flight_max = 8}};
};

INSTANTIATE_TEST_SUITE_P(Kinesis, EventSinkContract, testing::Values([] {
                             return std::make_unique<kinesis_sink_world>();
                         }));

}  // namespace
}  // namespace millrace::test
