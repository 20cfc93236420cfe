/// The tables that goharvest and its fork write to; `{0}` stands for the name.
#pragma once

namespace millrace::test {

inline constexpr const char* goharvest_table =
    "CREATE TABLE {0} (id BIGSERIAL PRIMARY KEY, create_time TIMESTAMPTZ NOT NULL, kafka_topic VARCHAR(249) "
    "NOT "
    "NULL, kafka_key VARCHAR(100) NOT NULL, kafka_value VARCHAR(10000), kafka_header_keys TEXT[] NOT NULL, "
    "kafka_header_values TEXT[] NOT NULL, leader_id UUID)";

inline constexpr const char* salemove_table =
    "CREATE TABLE {0} (id BIGSERIAL PRIMARY KEY, create_time TIMESTAMPTZ NOT NULL, kafka_topic VARCHAR(249) "
    "NOT "
    "NULL, kafka_key VARCHAR(100) NOT NULL, kafka_value BYTEA, kafka_header_keys TEXT[] NOT NULL, "
    "kafka_header_values TEXT[] NOT NULL, leader_id UUID, kafka_partition INTEGER DEFAULT -1 NOT NULL)";

}  // namespace millrace::test
