// The sink that encodes keeps the contract of the one that it is around, for rows that no rule concerns and
// for rows that are framed.
#include "contract/event_sink_contract.hpp"
#include "fake_sink.hpp"
#include "scheduler.hpp"
#include "schema_sink.hpp"
#include "unit/schema_sink/scripted_registry.hpp"

#include <chrono>
#include <memory>
#include <stdexcept>

namespace millrace::test {
namespace {

constexpr std::size_t frame_bytes = 5;

/// Around a fake; values go out framed and are read without their frames.
class schema_sink_world final : public sink_world {
public:
    explicit schema_sink_world(bool framed) : framed_(framed) {
        create_topic("orders");
        create_topic("payments");
        service_.verdict = [this](const outbox_row& row) -> std::optional<error> {
            if (!row.value || without_frame(std::string(*row.value)) != poison()) return std::nullopt;
            return error{errc::refused_record, retry_advice::never, false, "the row is poisoned"};
        };
        (void)registry_.put("one", R"("string")");
        std::vector<schema::topic_rule> rules;
        rules.push_back({.topic = framed ? "*" : "others", .value = {}, .key = {}});
        rules.back().value.mode = schema::coding_mode::frame;
        rules.back().value.subject = schema::subject_strategy::given;
        rules.back().value.given_subject = "one";
        auto source = std::make_unique<registry::schema_source>(
            host_,
            std::make_unique<schema::test::scripted_registry>(registry_),
            registry::schema_cache_options{}
        );
        auto prepared = schema::prepare_rules(rules, *source);
        if (!prepared) throw std::runtime_error(prepared.error().detail);
        coder_ = std::make_shared<schema::row_coder>(host_, std::move(source), std::move(*prepared));
        sink_ = std::make_unique<schema::schema_sink>(
            host_, std::make_unique<sim::fake_sink>(service_, world_, host_, random_, calm_), coder_
        );
        outbox_row row;
        row.topic = "orders";
        row.value = "v";
        (void)coder_->look(row);
        world_.run_for(std::chrono::milliseconds{10});
    }

    event_sink& sink() override { return *sink_; }
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
        for (const auto& r : service_.topic(topic, world_, random_, {}).shards().at(0)->records) {
            events.push_back({.key = r.key, .value = r.data, .headers = r.headers});
            if (r.data) events.back().value = without_frame(*r.data);
        }
        return events;
    }

private:
    [[nodiscard]] std::string without_frame(const std::string& value) const {
        if (!framed_) return value;
        if (value.size() < frame_bytes || value.front() != '\0') throw std::runtime_error("sent unframed");
        return value.substr(frame_bytes);
    }
    bool framed_;
    sim::scheduler world_;
    sim::rng random_{7};
    sim::sim_host host_{world_, random_};
    sim::faults calm_{};
    sim::sink_service service_;
    schema::test::registry_world registry_{host_};
    std::shared_ptr<schema::row_coder> coder_;
    std::unique_ptr<schema::schema_sink> sink_;
};

const auto untouched = testing::Values([] { return std::make_unique<schema_sink_world>(false); });
const auto framed = testing::Values([] { return std::make_unique<schema_sink_world>(true); });
INSTANTIATE_TEST_SUITE_P(SchemasOfOthers, EventSinkContract, untouched);
INSTANTIATE_TEST_SUITE_P(SchemasOfOthers, FullEventSinkContract, untouched);
INSTANTIATE_TEST_SUITE_P(Framed, EventSinkContract, framed);
INSTANTIATE_TEST_SUITE_P(Framed, FullEventSinkContract, framed);

}  // namespace
}  // namespace millrace::test
