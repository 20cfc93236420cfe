/// Where records go that the failure policy gives up: an outbox, or any sink.
///
/// A record keeps key, data and headers, and gets headers that say where it came from and why it is here:
/// `millrace-stream`, `millrace-shard`, `millrace-sequence`, `millrace-error`. Live on their host.
#pragma once

#include "consumer_driver.hpp"
#include "db_thread.hpp"
#include "port/event_sink.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>
#include <millrace/record.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace millrace {

inline constexpr std::size_t dead_letter_error_max = 4'096;  ///< Bytes of `millrace-error`; the rest is cut.

/// The record as an event for `topic`.
[[nodiscard]] event dead_letter(
    const record_batch& batch,
    std::size_t index,
    const error& why,
    const std::string& origin,
    const std::string& topic
);

/// Adds to an outbox in SQLite, under the name of the stream that the record came from.
class outbox_dead_letters final : public dead_letter_sink {
public:
    /// `name` is how messages name the file.
    outbox_dead_letters(host& home, std::string path, std::string name, std::string origin);
    void put(std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done)
        override;

    /// Whether the outbox is there and usable.
    void look(completion<void> done);

private:
    std::string origin_;
    sqlite::db_thread thread_;
};

/// Publishes to a topic of a sink.
class sink_dead_letters final : public dead_letter_sink {
public:
    sink_dead_letters(std::unique_ptr<event_sink> sink, std::string topic, std::string origin)
        : sink_(std::move(sink)), topic_(std::move(topic)), origin_(std::move(origin)) {}
    void put(std::shared_ptr<const record_batch> batch, std::size_t index, error why, completion<void> done)
        override;

private:
    std::unique_ptr<event_sink> sink_;
    std::string topic_;
    std::string origin_;
};

}  // namespace millrace
