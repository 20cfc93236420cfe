#include "relay/servers.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

namespace millrace::bench {

namespace {

std::string from_environment(const char* name) {
    const char* const value = std::getenv(name);
    if (value == nullptr) {
        throw std::runtime_error(
            fmt::format("{} is not set: \"./dev bench relay\" starts the servers and sets it", name)
        );
    }
    return value;
}

pg_result checked(PGconn* connection, PGresult* answer, const std::string& sql) {
    pg_result owned{answer};
    const auto status = PQresultStatus(answer);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        throw std::runtime_error(fmt::format("`{}`: {}", sql, PQerrorMessage(connection)));
    }
    return owned;
}

pg_result with_values(
    PGconn* connection, const std::string& sql, const std::vector<std::string>& values, int format
) {
    std::vector<const char*> texts;
    texts.reserve(values.size());
    for (const auto& value : values)
        texts.push_back(value.c_str());
    return checked(
        connection,
        PQexecParams(
            connection,
            sql.c_str(),
            static_cast<int>(values.size()),
            nullptr,
            texts.data(),
            nullptr,
            nullptr,
            format
        ),
        sql
    );
}

}  // namespace

servers servers_of_environment() {
    return {from_environment("MILLRACE_TEST_POSTGRES"), from_environment("MILLRACE_TEST_KAFKA")};
}

pg_connection connect(const std::string& url) {
    pg_connection connection{PQconnectdb(url.c_str())};
    if (PQstatus(connection.get()) != CONNECTION_OK) {
        throw std::runtime_error(PQerrorMessage(connection.get()));
    }
    return connection;
}

pg_result run_sql(PGconn* connection, const std::string& sql) {
    return checked(connection, PQexec(connection, sql.c_str()), sql);
}

pg_result run_sql(PGconn* connection, const std::string& sql, const std::vector<std::string>& values) {
    return with_values(connection, sql, values, 0);
}

pg_result run_binary(PGconn* connection, const char* sql, const std::vector<std::string>& values) {
    return with_values(connection, sql, values, 1);
}

kafka_client make_client(rd_kafka_type_t type, const settings_list& settings) {
    std::array<char, 512> why{};
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    for (const auto& [name, value] : settings) {
        if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), why.data(), why.size()) !=
            RD_KAFKA_CONF_OK) {
            throw std::runtime_error(why.data());
        }
    }
    if (type == RD_KAFKA_PRODUCER) rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
    kafka_client client{rd_kafka_new(type, conf, why.data(), why.size())};
    if (!client) throw std::runtime_error(why.data());
    return client;
}

void create_topic(const servers& at, const std::string& topic, int partitions) {
    const auto client = make_client(RD_KAFKA_PRODUCER, {{"bootstrap.servers", at.kafka}});
    std::array<char, 512> why{};
    rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, why.data(), why.size());
    if (wanted == nullptr) throw std::runtime_error(why.data());
    rd_kafka_queue_t* const queue = rd_kafka_queue_new(client.get());
    rd_kafka_CreateTopics(client.get(), &wanted, 1, nullptr, queue);
    rd_kafka_event_t* const event = rd_kafka_queue_poll(queue, 30'000);
    std::size_t count = 0;
    const auto* const answer = event == nullptr ? nullptr : rd_kafka_event_CreateTopics_result(event);
    const auto* const topics =
        answer == nullptr ? nullptr : rd_kafka_CreateTopics_result_topics(answer, &count);
    std::string problem;
    if (count != 1) {
        problem = "no answer";
    } else if (rd_kafka_topic_result_error(topics[0]) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        problem = rd_kafka_topic_result_error_string(topics[0]);
    }
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_NewTopic_destroy(wanted);
    if (!problem.empty()) throw std::runtime_error(fmt::format("topic {}: {}", topic, problem));
}

namespace {

/// A topic that was just made has no leader for a moment.
void wait_for_end(
    rd_kafka_t* client, const std::string& topic, int partition, std::int64_t& low, std::int64_t& high
) {
    constexpr int attempts = 100;
    for (int attempt = 1;; ++attempt) {
        const auto asked =
            rd_kafka_query_watermark_offsets(client, topic.c_str(), partition, &low, &high, 10'000);
        if (asked == RD_KAFKA_RESP_ERR_NO_ERROR) return;
        if (attempt == attempts) throw std::runtime_error(rd_kafka_err2str(asked));
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
}

}  // namespace

topic_tail::topic_tail(const servers& at, const std::string& topic, int partitions)
    : client_(make_client(
          RD_KAFKA_CONSUMER,
          {{"bootstrap.servers", at.kafka},
           {"group.id", "millrace-bench"},
           {"enable.auto.commit", "false"},
           {"fetch.wait.max.ms", "100"}}
      )) {
    rd_kafka_topic_partition_list_t* const all = rd_kafka_topic_partition_list_new(partitions);
    for (int partition = 0; partition < partitions; ++partition) {
        std::int64_t low = 0;
        std::int64_t high = 0;
        wait_for_end(client_.get(), topic, partition, low, high);
        rd_kafka_topic_partition_list_add(all, topic.c_str(), partition)->offset = high;
    }
    const auto assigned = rd_kafka_assign(client_.get(), all);
    rd_kafka_topic_partition_list_destroy(all);
    if (assigned != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(assigned));
}

bool topic_tail::next(std::string& value, int limit_ms) {
    rd_kafka_message_t* const message = rd_kafka_consumer_poll(client_.get(), limit_ms);
    if (message == nullptr) return false;
    const bool good = message->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (good) value.assign(static_cast<const char*>(message->payload), message->len);
    rd_kafka_message_destroy(message);
    return good;
}

}  // namespace millrace::bench
