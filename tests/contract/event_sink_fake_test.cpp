#include "contract/event_sink_contract.hpp"
#include "fake_sink.hpp"
#include "scheduler.hpp"

#include <memory>

namespace millrace::test {
namespace {

class fake_sink_world final : public sink_world {
public:
    fake_sink_world() {
        create_topic("orders");
        create_topic("payments");
        service_.verdict = [this](const outbox_row& row) -> std::optional<error> {
            if (row.value != poison()) return std::nullopt;
            return error{errc::refused_record, retry_advice::never, false, "the row is poisoned"};
        };
    }

    event_sink& sink() override { return sink_; }
    bool run_until(const std::function<bool()>& condition) override {
        for (int steps = 0; steps < 100'000 && !condition(); ++steps) {
            if (!world_.step()) break;
        }
        return condition();
    }
    void create_topic(const std::string& name) override { service_.topic(name, world_, random_, {}); }
    std::string poison() const override { return "poison"; }

    std::vector<event> published(const std::string& topic) override {
        std::vector<event> events;
        for (const auto& r : service_.topic(topic, world_, random_, {}).shards().at(0)->records)
            events.push_back({.key = r.key, .value = r.data, .headers = r.headers});
        return events;
    }

private:
    sim::scheduler world_;
    sim::rng random_{7};
    sim::sim_host host_{world_, random_};
    sim::faults calm_{};
    sim::sink_service service_;
    sim::fake_sink sink_{service_, world_, host_, random_, calm_};
};

const auto worlds = testing::Values([] { return std::make_unique<fake_sink_world>(); });
INSTANTIATE_TEST_SUITE_P(Fake, EventSinkContract, worlds);
INSTANTIATE_TEST_SUITE_P(Fake, FullEventSinkContract, worlds);

}  // namespace
}  // namespace millrace::test
