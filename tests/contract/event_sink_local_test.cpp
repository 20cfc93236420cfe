#include "contract/event_sink_contract.hpp"
#include "contract/loop_host.hpp"
#include "local_admin.hpp"
#include "local_read.hpp"
#include "local_sink.hpp"
#include "support/temporary_folder.hpp"

#include <memory>

namespace millrace::test {
namespace {

event copy(const record& r) {
    const auto owned = [](const std::optional<std::string_view>& bytes) {
        return bytes ? std::optional(std::string(*bytes)) : std::nullopt;
    };
    event e{.key = owned(r.key), .value = owned(r.data)};
    for (const auto& h : r.headers)
        e.headers.push_back({std::string(h.name), owned(h.value)});
    return e;
}

class local_sink_world final : public sink_world {
public:
    local_sink_world() {
        create_topic("orders");
        create_topic("payments");
    }

    event_sink& sink() override { return sink_; }
    bool run_until(const std::function<bool()>& condition) override { return loop_.run_until(condition); }
    void create_topic(const std::string& name) override { EXPECT_TRUE(admin_.create_stream(name, 1)); }
    std::string poison() const override { return std::string(1'001, 'x'); }

    std::vector<event> published(const std::string& topic) override {
        auto db = sqlite::database::open(file_, {}).value();
        const auto shard = local::list_stream(db, topic, system_wall_time)->shards.at(0).shard;
        const auto cursor = local::open_cursor(db, topic, shard, from::trim_horizon{}).value();
        const auto reply = local::read_records(db, topic, shard, cursor, {}).value();
        std::vector<event> events;
        for (const auto& r : reply.records->records())
            events.push_back(copy(r));
        return events;
    }

private:
    support::temporary_folder directory_;
    std::string file_{directory_.file("streams.db")};
    loop_host loop_;
    local_admin admin_{local_admin::open_or_create(file_).value()};
    local_sink sink_{loop_, file_, {.limits = {.value_bytes_max = 1'000}}};
};

const auto worlds = testing::Values([] { return std::make_unique<local_sink_world>(); });
INSTANTIATE_TEST_SUITE_P(Local, EventSinkContract, worlds);
INSTANTIATE_TEST_SUITE_P(Local, FullEventSinkContract, worlds);

}  // namespace
}  // namespace millrace::test
