/// Kafka's topics for tests: made, altered, and read back whole.
///
/// Every call returns when the broker has done it and throws std::runtime_error otherwise. One thread owns an
/// object.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

struct rd_kafka_s;

namespace millrace::support {

/// Settings of librdkafka or of a topic.
using kafka_settings = std::map<std::string, std::string>;

struct topic_record {
    std::int32_t partition{0};
    std::int64_t offset{0};
    std::int64_t timestamp{0};       ///< Milliseconds since 1970.
    std::optional<std::string> key;  ///< Empty: null.
    std::optional<std::string> value;
    std::vector<std::pair<std::string, std::optional<std::string>>> headers;

    /// The value of the first header of this name.
    [[nodiscard]] std::optional<std::string> header(const std::string& name) const;
};

namespace detail {
struct kafka_closer {
    void operator()(rd_kafka_s* handle) const noexcept;
};
}  // namespace detail
using kafka_handle = std::unique_ptr<rd_kafka_s, detail::kafka_closer>;

class kafka_admin {
public:
    explicit kafka_admin(const std::string& bootstrap, const kafka_settings& client = {});

    void create_topic(const std::string& name, int partitions = 8, const kafka_settings& settings = {});
    void delete_topic(const std::string& name);
    void add_partitions(const std::string& name, int total);

    /// These are the topic's settings from now on; what it had before is its default again.
    void configure_topic(const std::string& name, const kafka_settings& settings);

    enum class operation : std::uint8_t { read, write, describe, describe_configs };

    /// Denies an operation on a topic to everybody (by default the user of a connection without SASL too) and
    /// allows all others.
    void deny(const std::string& topic, operation what);

    /// Takes back what `deny` made for the topic.
    void allow_all(const std::string& topic);

private:
    kafka_handle handle_;
};

/// All records of a topic, from its beginning.
class topic_reader {
public:
    /// The topic must exist. Aborted transactions are left out unless `client` says otherwise.
    topic_reader(const std::string& bootstrap, std::string topic, const kafka_settings& client = {});

    /// What was there at the call and was not read before.
    std::vector<topic_record> read(std::chrono::milliseconds limit = std::chrono::seconds{30});

    /// Reads until it has this many, or the limit has passed.
    std::vector<topic_record> read_at_least(
        std::size_t count, std::chrono::milliseconds limit = std::chrono::seconds{30}
    );

    /// Waits for the next record, at most so long, and takes those that have come with it.
    std::vector<topic_record> next(std::chrono::milliseconds limit);

private:
    [[nodiscard]] std::optional<topic_record> poll(std::chrono::milliseconds limit);

    kafka_handle handle_;
    std::string topic_;
    std::vector<std::int64_t> next_;  // by partition
};

/// Every record of the topic.
std::vector<topic_record> read_topic(const std::string& bootstrap, const std::string& topic);

/// Writes records to the partition that each names; those with -1 by their key. Throws when one is refused or
/// not acknowledged within 10 s, after all others are settled.
void write_topic(
    const std::string& bootstrap, const std::string& topic, const std::vector<topic_record>& records
);

}  // namespace millrace::support
