#include "contract/event_sink_contract.hpp"
#include "contract/loop_host.hpp"
#include "kafka_sink.hpp"
#include "support/kafka_topics.hpp"
#include "support/services.hpp"

#include <memory>
#include <string>

namespace millrace::test {
namespace {

/// Puts the topics of one test apart from those of all others on the shared broker.
class prefixed_sink final : public event_sink {
public:
    prefixed_sink(event_sink& to, std::string prefix) : to_(to), prefix_(std::move(prefix)) {}

    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override {
        const auto batch = std::make_shared<row_batch>();
        batch->reserve(rows.size());
        for (const auto& one : rows)
            batch->add(prefixed(*one.row, *batch));
        std::vector<outgoing_row> renamed;
        for (const auto& row : batch->rows())
            renamed.push_back({&row, batch});
        // The values still point into the batches given.
        to_.publish(
            where,
            std::move(renamed),
            mine,
            [rows = std::move(rows), done = std::move(done)](auto outcome) { done(std::move(outcome)); }
        );
    }
    void reset_main(completion<void> done) override { to_.reset_main(std::move(done)); }
    void purge(completion<void> done) override { to_.purge(std::move(done)); }
    std::optional<error> suspect(const outbox_row& row) const override {
        row_batch names;
        return to_.suspect(prefixed(row, names));
    }
    capacity limits() const override { return to_.limits(); }

private:
    outbox_row prefixed(outbox_row row, row_batch& names) const {
        row.topic = names.store(prefix_ + std::string(row.topic));
        return row;
    }

    event_sink& to_;
    std::string prefix_;
};

class kafka_sink_world final : public sink_world {
public:
    kafka_sink_world() {
        create_topic("orders");
        create_topic("payments");
    }

    event_sink& sink() override { return prefixed_; }
    bool run_until(const std::function<bool()>& condition) override { return loop_.run_until(condition); }
    void create_topic(const std::string& name) override { admin_.create_topic(prefix_ + name, 1); }
    std::string poison() const override { return std::string(2'000, 'x'); }

    std::vector<event> published(const std::string& topic) override {
        std::vector<event> events;
        for (const auto& r : support::read_topic(servers_, prefix_ + topic)) {
            event e{.key = r.key, .value = r.value};
            for (const auto& [name, value] : r.headers)
                e.headers.push_back({name, value});
            events.push_back(std::move(e));
        }
        return events;
    }

private:
    std::string servers_{support::services().kafka};
    std::string prefix_{support::unique_name("kafka_sink") + "."};
    support::kafka_admin admin_{servers_};
    loop_host loop_;
    std::unique_ptr<kafka_sink> sink_{
        kafka_sink::open(loop_, parse_kafka_url("kafka://" + servers_ + "?message.max.bytes=1500").value())
            .value()};
    prefixed_sink prefixed_{*sink_, prefix_};
};

const auto worlds = testing::Values([] { return std::make_unique<kafka_sink_world>(); });
INSTANTIATE_TEST_SUITE_P(Kafka, EventSinkContract, worlds);
INSTANTIATE_TEST_SUITE_P(Kafka, FullEventSinkContract, worlds);

}  // namespace
}  // namespace millrace::test
