/// Commands between PostgreSQL and Kafka, on the shared servers.
#pragma once

#include "cli_fixture.hpp"
#include "support/fault_proxy.hpp"
#include "support/kafka_topics.hpp"
#include "support/private_servers.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"

#include <string>
#include <vector>

namespace millrace::cli {

using support::services;

/// A schema and a topic of the test's own on the shared servers.
struct CliPostgresKafka : Cli {
    CliPostgresKafka() { sql.execute("CREATE SCHEMA " + schema); }
    ~CliPostgresKafka() override { sql.execute("DROP SCHEMA IF EXISTS " + schema + " CASCADE"); }

    [[nodiscard]] std::string outbox(const std::string& more = {}) const {
        return services().postgres + "?table=" + schema + ".outbox" + more;
    }
    /// The outbox by way of a proxy that leads to the server.
    [[nodiscard]] std::string outbox_through(const support::fault_proxy& way) const {
        auto through = outbox();
        const auto port = std::to_string(support::port_of(services().postgres));
        return through.replace(through.find(":" + port) + 1, port.size(), std::to_string(way.port()));
    }
    [[nodiscard]] static std::string sink(const std::string& properties = {}) {
        return "kafka://" + services().kafka + properties;
    }
    void make_outbox() const { ok({"outbox", "init", "--outbox", outbox()}); }
    [[nodiscard]] words relay(words more = {"--once"}) const {
        words command{"relay", "--outbox", outbox(), "--sink", sink()};
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }
    void put(const std::string& key, const std::string& value) const {
        ok({"outbox", "put", "--outbox", outbox(), "--topic", topic, "--key", key, "--value", value});
    }
    [[nodiscard]] std::vector<std::string> delivered() const {
        std::vector<std::string> values;
        for (const auto& record : support::read_topic(services().kafka, topic))
            values.push_back(record.value.value_or("(null)"));
        return values;
    }
    [[nodiscard]] std::string admin_port() const {
        const std::string log = said("relay");
        const auto at = log.find("port=") + 5;
        return log.substr(at, log.find_first_of(" \n", at) - at);
    }
    [[nodiscard]] std::string page(const std::string& port, const std::string& path) const {
        return shell(
                   "exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf 'GET " + path +
                   " HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' >&3; cat <&3"
        )
            .output;
    }
    /// As its metrics tell it, in seconds; -1 where they do not.
    [[nodiscard]] double oldest_age(const std::string& port) const {
        const auto text = page(port, "/metrics");
        const std::string name = "\nmillrace_relay_oldest_age_seconds ";
        const auto found = text.find(name);
        return found == std::string::npos ? -1.0 : std::stod(text.substr(found + name.size()));
    }
    [[nodiscard]] std::string stats() const {
        return ok({"outbox", "stats", "--outbox", outbox(), "--json"});
    }

    std::string schema = support::unique_name("app");
    std::string topic = support::unique_name("app_orders");
    support::sql_connection sql{services().postgres};
    support::kafka_admin kafka{services().kafka};
};

}  // namespace millrace::cli
