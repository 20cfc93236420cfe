/// The real servers that the relay's measurements run on, by the bare calls of libpq and librdkafka: as thin
/// as they can be, so that a probe is a ceiling.
///
/// Every function throws std::runtime_error with the server's own words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <libpq-fe.h>
#include <librdkafka/rdkafka.h>

namespace millrace::bench {

/// Where the servers are, from MILLRACE_TEST_POSTGRES and MILLRACE_TEST_KAFKA.
struct servers {
    std::string postgres;
    std::string kafka;
};
[[nodiscard]] servers servers_of_environment();

struct finish_connection {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
struct clear_result {
    void operator()(PGresult* answer) const noexcept { PQclear(answer); }
};
using pg_connection = std::unique_ptr<PGconn, finish_connection>;
using pg_result = std::unique_ptr<PGresult, clear_result>;

[[nodiscard]] pg_connection connect(const std::string& url);
pg_result run_sql(PGconn* connection, const std::string& sql);
pg_result run_sql(PGconn* connection, const std::string& sql, const std::vector<std::string>& values);

/// Binary results.
pg_result run_binary(PGconn* connection, const char* sql, const std::vector<std::string>& values);

struct destroy_client {
    void operator()(rd_kafka_t* client) const noexcept { rd_kafka_destroy(client); }
};
using kafka_client = std::unique_ptr<rd_kafka_t, destroy_client>;
using settings_list = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] kafka_client make_client(rd_kafka_type_t type, const settings_list& settings);
void create_topic(const servers& at, const std::string& topic, int partitions);

/// Reads all partitions of a topic from its end as of now.
class topic_tail {
public:
    topic_tail(const servers& at, const std::string& topic, int partitions);

    /// The next record's value; nothing when none came within the limit.
    [[nodiscard]] bool next(std::string& value, int limit_ms);

private:
    kafka_client client_;
};

}  // namespace millrace::bench
