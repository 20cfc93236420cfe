/// An outbox in a database of its own and topics of its own, on the servers that tests share, and what a test
/// does with them: write rows, run `millrace`, read the topics back.
#pragma once

#include "support/kafka_topics.hpp"
#include "support/process.hpp"
#include "support/services.hpp"
#include "support/sql_connection.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::e2e {

class postgres_kafka_shop {
public:
    /// `table` is SQL that makes another `outbox` than `outbox init` would.
    explicit postgres_kafka_shop(const std::string& table = {});
    ~postgres_kafka_shop();
    postgres_kafka_shop(const postgres_kafka_shop&) = delete;
    postgres_kafka_shop& operator=(const postgres_kafka_shop&) = delete;

    [[nodiscard]] std::string topic(const support::kafka_settings& settings = {}, int partitions = 4);
    [[nodiscard]] support::kafka_admin& admin() noexcept { return admin_; }
    [[nodiscard]] support::sql_connection& sql() noexcept { return sql_; }
    [[nodiscard]] const std::string& url() const noexcept { return url_; }
    [[nodiscard]] support::sql_connection session() const { return support::sql_connection{url_}; }

    /// One row; its value is `text`, filled up with x to so many bytes.
    void put(const std::string& topic, const std::string& key, const std::string& text, int bytes = 0);

    /// Rows numbered from `first` to `last`, each with a key of its own: `prefix` and its number.
    void put_each(const std::string& topic, const std::string& prefix, int first, int last, int bytes = 0);

    [[nodiscard]] support::process start_relay(const std::vector<std::string>& options = {}) const;

    /// `millrace relay --once`.
    [[nodiscard]] support::command_result relay_once(const std::vector<std::string>& options = {}) const;

    /// `millrace outbox VERB...`; its output. Throws std::runtime_error when it fails.
    std::string outbox(std::vector<std::string> verb_and_options) const;

    [[nodiscard]] long long waiting() { return sql_.number("SELECT count(*) FROM outbox"); }
    [[nodiscard]] long long dead() { return sql_.number("SELECT count(*) FROM millrace_dead"); }
    [[nodiscard]] bool empties(std::chrono::seconds limit);

    /// The first word of each value of the key, in order.
    [[nodiscard]] std::vector<std::string> values(const std::string& topic, const std::string& key) const;
    [[nodiscard]] std::vector<support::topic_record> records(const std::string& topic) const {
        return support::read_topic(support::services().kafka, topic);
    }

    [[nodiscard]] std::string log() const { return support::read_file(folder_.path() / "log"); }

private:
    [[nodiscard]] std::vector<std::string> relay_command(const std::vector<std::string>& options) const;

    std::string database_ = support::unique_name("proof");
    support::sql_connection server_{support::services().postgres};
    std::string url_;
    support::temporary_folder folder_;
    support::kafka_admin admin_{support::services().kafka};
    support::sql_connection sql_;
};

}  // namespace millrace::e2e
