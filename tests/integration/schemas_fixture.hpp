/// The program with rules for schemas, on a real outbox in PostgreSQL, a real registry and a real Kafka.
#pragma once

#include "cli_fixture.hpp"
#include "integration/schema_registry_fixture.hpp"
#include "support/kafka_topics.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::cli {

using support::services;
using support::unique_name;

/// What stands before a value of the schema with this id.
inline std::string framed(std::uint32_t id, const std::string& value) {
    std::string out(1, '\0');
    for (unsigned shift = 32; shift > 0;) {
        shift -= 8;
        out += static_cast<char>(id >> shift);
    }
    return out + value;
}

struct SchemasPostgresKafka : Cli {
    SchemasPostgresKafka() { sql.execute("CREATE SCHEMA " + schema); }
    ~SchemasPostgresKafka() override { sql.execute("DROP SCHEMA IF EXISTS " + schema + " CASCADE"); }

    [[nodiscard]] std::string outbox_url() const {
        return services().postgres + "?table=" + schema + ".outbox";
    }

    /// A topic of the test's own.
    std::string make_topic(const std::string& name = "orders", int partitions = 2) {
        auto topic = unique_name(name);
        kafka.create_topic(topic, partitions);
        return topic;
    }

    /// The id under which the registry has it now.
    std::uint32_t put_schema(
        const std::string& subject,
        const std::string& text,
        registry::schema_type type = registry::schema_type::avro
    ) {
        const auto made = registry::test::ask(
            home, *client, registry::register_text{subject, registry::test::text_of(text, type)}
        );
        if (!made) throw std::runtime_error(made.error().why.detail);
        return made->id;
    }

    /// `rules` are lines of YAML, one a rule; `more` further keys of the section.
    void configure(
        const std::string& rules, const std::string& more = {}, std::string registry = services().registry
    ) {
        std::string text = fmt::format(
            "relay:\n  outbox: {}\n  sink: kafka://{}\n  lease: 2s\n  retry_max: 1s\nschemas:\n  registry: "
            "{}\n",
            outbox_url(),
            services().kafka,
            registry
        );
        if (!more.empty()) text += "  " + more + "\n";
        text += "  rules:\n";
        for (std::size_t at = 0; at < rules.size();) {
            const auto end = rules.find('\n', at);
            text += "    - " + rules.substr(at, end - at) + "\n";
            at = end == std::string::npos ? rules.size() : end + 1;
        }
        write("m.yaml", text);
        if (!std::exchange(made_, true)) ok({"outbox", "init", "--outbox", outbox_url()});
    }

    void put(const std::string& topic, const std::string& key, const std::string& value) {
        sql.query(
            "INSERT INTO " + schema +
                ".outbox (topic, key, value) VALUES ($1, convert_to($2, 'UTF8'), "
                "convert_to($3, 'UTF8'))",
            {topic, key, value}
        );
    }
    void put_tombstone(const std::string& topic, const std::string& key) {
        sql.query(
            "INSERT INTO " + schema + ".outbox (topic, key, value) VALUES ($1, convert_to($2, 'UTF8'), NULL)",
            {topic, key}
        );
    }

    [[nodiscard]] words relay(words more = {}) const {
        words command{"relay", "--config", path("m.yaml")};
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }
    support::command_result once() const { return millrace(relay({"--once"})); }

    /// Its status after SIGTERM; -1 when it does not end within 10 s.
    static int end(support::process& running) {
        running.ask_to_end();
        const auto report = running.wait(std::chrono::seconds{10});
        return report ? report->status : -1;
    }

    /// What arrived, in order of partition and offset.
    [[nodiscard]] static std::vector<std::string> values(const std::string& topic) {
        std::vector<std::string> out;
        for (const auto& record : support::read_topic(services().kafka, topic))
            out.push_back(record.value.value_or("(null)"));
        return out;
    }
    [[nodiscard]] long long backlog() { return sql.number("SELECT count(*) FROM " + schema + ".outbox"); }
    [[nodiscard]] bool empties(std::chrono::seconds limit = std::chrono::seconds{60}) {
        return support::eventually(limit, [&] { return backlog() == 0; });
    }
    [[nodiscard]] std::string dead_letters() const {
        return ok({"outbox", "dead", "list", "--outbox", outbox_url(), "--json"});
    }

    std::string schema = unique_name("schemas");
    support::sql_connection sql{services().postgres};
    support::kafka_admin kafka{services().kafka};
    millrace::test::loop_host home;
    std::unique_ptr<registry::registry_client> client = registry::test::connected(home, [] {
        registry::registry_options options;
        options.urls = {services().registry};
        return options;
    }());

private:
    bool made_{false};
};

}  // namespace millrace::cli
