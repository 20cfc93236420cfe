#include "relay/probes.hpp"

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace millrace::bench {

namespace {

constexpr int batch_rows = 5'000;

std::uint64_t reports_in(rd_kafka_queue_t* queue, int wait_ms) {
    rd_kafka_event_t* const event = rd_kafka_queue_poll(queue, wait_ms);
    if (event == nullptr) return 0;
    std::uint64_t reported = 0;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR) {
        while (const auto* message = rd_kafka_event_message_next(event)) {
            if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
                throw std::runtime_error(rd_kafka_err2str(message->err));
            ++reported;
        }
    }
    rd_kafka_event_destroy(event);
    return reported;
}

}  // namespace

std::uint64_t probe_postgres(const servers& at, const std::string& table) {
    const auto connection = connect(at.postgres);
    const auto read = fmt::format(
        "SELECT id, topic, key, value, header_names, header_values FROM {} WHERE id > $1 ORDER BY id LIMIT "
        "{}",
        table,
        batch_rows
    );
    const auto remove = fmt::format("DELETE FROM {} WHERE id BETWEEN $1 AND $2", table);
    std::string after = "0";
    std::uint64_t moved = 0;
    for (;;) {
        const auto rows = run_binary(connection.get(), read.c_str(), {after});
        const int count = PQntuples(rows.get());
        if (count == 0) return moved;
        const auto id_of = [&](int row) {
            std::uint64_t id = 0;
            for (int i = 0; i < 8; ++i)
                id = id << 8 | static_cast<unsigned char>(PQgetvalue(rows.get(), row, 0)[i]);
            return std::to_string(id);
        };
        after = id_of(count - 1);
        run_sql(connection.get(), remove, {id_of(0), after});
        moved += static_cast<std::uint64_t>(count);
    }
}

void probe_kafka(
    const servers& at,
    const std::string& topic,
    std::uint64_t rows,
    std::uint64_t keys,
    std::size_t value_bytes
) {
    const auto client = make_client(
        RD_KAFKA_PRODUCER,
        {{"bootstrap.servers", at.kafka},
         {"enable.idempotence", "true"},
         {"partitioner", "murmur2_random"},
         {"linger.ms", "5"}}
    );
    rd_kafka_queue_t* const queue = rd_kafka_queue_get_main(client.get());
    rd_kafka_topic_t* const where = rd_kafka_topic_new(client.get(), topic.c_str(), nullptr);
    const std::string value(value_bytes, 'v');
    constexpr std::uint64_t window = 50'000;
    std::uint64_t sent = 0;
    std::uint64_t acknowledged = 0;
    while (acknowledged < rows) {
        while (sent < rows && sent - acknowledged < window) {
            const auto key = fmt::format("key-{}", sent * 7919 % keys);
            if (rd_kafka_produce(
                    where,
                    RD_KAFKA_PARTITION_UA,
                    RD_KAFKA_MSG_F_COPY,
                    const_cast<char*>(value.data()),
                    value.size(),
                    key.data(),
                    key.size(),
                    nullptr
                ) != 0)
                break;
            ++sent;
        }
        acknowledged += reports_in(queue, 100);
    }
    rd_kafka_topic_destroy(where);
    rd_kafka_queue_destroy(queue);
}

}  // namespace millrace::bench
