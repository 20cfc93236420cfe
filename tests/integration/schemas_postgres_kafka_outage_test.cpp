// A registry that is killed, stands still and comes back while rows are written.
#include "schemas_fixture.hpp"
#include "support/private_servers.hpp"

#include <map>
#include <thread>

#include <gmock/gmock.h>

namespace millrace::cli {
namespace {

using namespace std::chrono_literals;

/// Writes numbered rows to a topic under each of several keys, until it is told to stop.
class writer {
public:
    writer(const std::string& table, std::vector<std::string> topics) : topics_(std::move(topics)) {
        thread_ = std::thread([this, table] {
            support::sql_connection sql(services().postgres);
            while (!stop_) {
                for (const auto& topic : topics_) {
                    sql.query(
                        "INSERT INTO " + table +
                            " (topic, key, value) SELECT $1, convert_to('k' || g % 7, 'UTF8'), "
                            "convert_to('{\"n\":' || "
                            "g || '}', 'UTF8') FROM generate_series($2::int, $2::int + 19) g",
                        {topic, std::to_string(written_)}
                    );
                }
                written_ += 20;
                std::this_thread::sleep_for(5ms);
            }
        });
    }
    ~writer() { (void)end(); }

    /// How many rows each topic got.
    int end() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
        return written_;
    }

private:
    std::vector<std::string> topics_;
    std::atomic<bool> stop_{false};
    int written_{0};
    std::thread thread_;
};

/// The number in a value that was encoded by the schema with this id; -1 when it is anything else.
int number_in(const std::optional<std::string>& value, std::uint32_t id) {
    const auto before = framed(id, "");
    if (!value || !value->starts_with(before)) return -1;
    unsigned bits = 0;
    unsigned shift = 0;
    for (std::size_t i = before.size(); i < value->size(); ++i, shift += 7)
        bits |= (static_cast<unsigned>((*value)[i]) & 0x7FU) << shift;
    return static_cast<int>(bits >> 1U);
}

TEST_F(SchemasPostgresKafka, ARegistryThatIsKilledAndRestartedUnderLoadLosesAndReordersNothing) {
    support::private_registry registry;
    registry::registry_options options;
    options.urls = {registry.url()};
    client = registry::test::connected(home, options);
    std::vector<std::string> known;
    std::vector<std::string> late;
    std::map<std::string, std::uint32_t> ids;
    for (int i = 0; i < 3; ++i) {
        for (auto* const list : {&known, &late}) {
            list->push_back(make_topic(list == &known ? "known" : "late"));
            ids[list->back()] = put_schema(
                list->back() + "-value",
                R"({"type":"record","name":"N","fields":[{"name":"n","type":"int"}]})"
            );
        }
    }
    configure("{topic: '*', value: avro}", "latest_ttl: 1s\n  request_timeout: 1s", registry.url());
    auto running = start(relay(), "relay");
    writer first(schema + ".outbox", known);
    std::this_thread::sleep_for(1s);
    registry.kill();
    std::this_thread::sleep_for(500ms);
    writer second(schema + ".outbox", late);  // whose schemas nobody has asked for yet
    std::this_thread::sleep_for(3s);
    EXPECT_TRUE(says("relay", "schema_registry.trouble")) << said("relay");
    registry.start();
    std::this_thread::sleep_for(1s);
    registry.pause();
    std::this_thread::sleep_for(3s);
    registry.resume();
    std::this_thread::sleep_for(1s);
    const auto first_rows = first.end();
    const auto second_rows = second.end();
    ASSERT_TRUE(empties());
    EXPECT_EQ(dead_letters(), "[]\n");
    for (const auto& [topic, id] : ids) {
        const auto is_known = std::find(known.begin(), known.end(), topic) != known.end();
        std::map<std::string, int> last;
        int count = 0;
        for (const auto& record : support::read_topic(services().kafka, topic)) {
            const auto number = number_in(record.value, id);
            ASSERT_GE(number, 0) << "a value that is not framed";
            const auto [at, fresh] = last.emplace(record.key.value_or(""), number);
            EXPECT_TRUE(fresh || at->second < number) << topic << ": " << number << " behind " << at->second;
            at->second = number;
            ++count;
        }
        EXPECT_EQ(count, is_known ? first_rows : second_rows);
    }
    EXPECT_EQ(end(running), 0);
}

}  // namespace
}  // namespace millrace::cli
