/// A relay that encodes by the schemas of a scripted registry, between a fake outbox and a fake sink.
#pragma once

#include "prepared_rules.hpp"
#include "row_coder.hpp"
#include "schema_sink.hpp"
#include "unit/relay/relay_world.hpp"
#include "unit/schema_sink/scripted_registry.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::schema::test {

using namespace std::chrono_literals;

inline const std::string number_schema =
    R"({"type":"record","name":"N","fields":[{"name":"n","type":"int"}]})";
inline const std::string wider_schema =
    R"({"type":"record","name":"N","fields":[{"name":"n","type":"int"},{"name":"m","type":"int","default":7}]})";

/// What stands before a value of the schema with this id.
inline std::string prefix(std::uint32_t id) {
    std::string out(1, '\0');
    for (unsigned shift = 32; shift > 0;) {
        shift -= 8;
        out += static_cast<char>(id >> shift);
    }
    return out;
}

inline topic_rule avro_values(const std::string& topic) {
    topic_rule rule;
    rule.topic = topic;
    rule.value.mode = coding_mode::avro;
    return rule;
}

/// Hands on to a sink that somebody else owns.
class borrowed_sink final : public event_sink {
public:
    explicit borrowed_sink(event_sink& of) : of_(of) {}
    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override {
        of_.publish(where, std::move(rows), mine, std::move(done));
    }
    void reset_main(completion<void> done) override {
        ++resets;
        of_.reset_main(std::move(done));
    }
    void purge(completion<void> done) override { of_.purge(std::move(done)); }
    [[nodiscard]] std::optional<error> suspect(const outbox_row& row) const override {
        return of_.suspect(row);
    }
    [[nodiscard]] capacity limits() const override { return of_.limits(); }

    int resets{0};

private:
    event_sink& of_;
};

/// A record as it arrived.
struct arrived {
    row_id id;
    std::string topic;
    std::optional<std::string> key;
    std::optional<std::string> value;
    std::vector<std::pair<std::string, std::string>> headers;
};

struct schema_world_settings {
    std::vector<topic_rule> rules{avro_values("t")};
    registry::schema_cache_options cache{};
    sim::relay_settings relay{};
    schema_sink_options sink{};
    row_coder_limits coder{};
};

class schema_world {
public:
    explicit schema_world(schema_world_settings s = {}) : settings_(std::move(s)) {
        auto relay = settings_.relay;
        relay.around = [this](host& home, event_sink& to) { return make_sink(home, to); };
        w = std::make_unique<sim::relay_world>(relay);
        w->service.observe([this](const outbox_row& row, epoch) { note(row); });
    }
    schema_world(const schema_world&) = delete;
    schema_world& operator=(const schema_world&) = delete;
    ~schema_world() { w.reset(); }

    row_id put(
        const std::string& key,
        std::optional<std::string> value = R"({"n":1})",
        const std::string& topic = "t",
        std::vector<header> headers = {}
    ) {
        return w->table.put(
            {.topic = topic, .key = key, .value = std::move(value), .headers = std::move(headers)}
        );
    }
    void start() { w->driver->start(epoch{1}); }
    void run(nanoseconds span) { w->world.run_for(span); }
    [[nodiscard]] bool run_until_empty(nanoseconds limit = 60s) { return w->run_until_empty(limit); }

    /// The values that arrived in a topic, in order.
    [[nodiscard]] std::vector<std::string> values(const std::string& topic = "t") const {
        std::vector<std::string> out;
        for (const auto& record : records)
            if (record.topic == topic) out.push_back(record.value.value_or("NULL"));
        return out;
    }
    [[nodiscard]] std::vector<std::int64_t> ids(const std::string& topic = "t") const {
        std::vector<std::int64_t> out;
        for (const auto& record : records)
            if (record.topic == topic) out.push_back(record.id.value());
        return out;
    }
    /// `1 refused_record`, of each row among the dead letters.
    [[nodiscard]] std::vector<std::string> dead() const {
        std::vector<std::string> out;
        for (const auto& d : w->table.dead())
            out.push_back(std::to_string(d.row.id.value()) + " " + d.reason);
        return out;
    }

    std::unique_ptr<registry_world> registry;
    borrowed_sink* inner{nullptr};
    std::shared_ptr<row_coder> coder;
    schema_sink* sink{nullptr};
    std::vector<arrived> records;
    std::unique_ptr<sim::relay_world> w;

private:
    std::unique_ptr<event_sink> make_sink(host& home, event_sink& to) {
        registry = std::make_unique<registry_world>(home);
        auto source = std::make_unique<registry::schema_source>(
            home, std::make_unique<scripted_registry>(*registry), settings_.cache
        );
        auto rules = prepare_rules(settings_.rules, *source);
        if (!rules) throw std::runtime_error(rules.error().detail);
        coder = std::make_shared<row_coder>(home, std::move(source), std::move(*rules), settings_.coder);
        auto borrowed = std::make_unique<borrowed_sink>(to);
        inner = borrowed.get();
        auto made = std::make_unique<schema_sink>(home, std::move(borrowed), coder, settings_.sink);
        sink = made.get();
        return made;
    }

    void note(const outbox_row& row) {
        const auto text = [](std::optional<std::string_view> bytes) {
            return bytes ? std::optional(std::string(*bytes)) : std::nullopt;
        };
        arrived record{row.id, std::string(row.topic), text(row.key), text(row.value), {}};
        for (const auto& h : row.headers)
            record.headers.emplace_back(std::string(h.name), std::string(h.value.value_or("NULL")));
        records.push_back(std::move(record));
        w->appended(row);
    }

    schema_world_settings settings_;
};

}  // namespace millrace::schema::test
