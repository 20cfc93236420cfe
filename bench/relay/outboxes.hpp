/// Outboxes in PostgreSQL full of events, each in a schema of its own.
#pragma once

#include "dataset.hpp"
#include "measure.hpp"
#include "relay/servers.hpp"

#include <string>
#include <string_view>

namespace millrace::bench {

/// A schema with an outbox, made by `millrace outbox init` and dropped at the end; and a topic of the same
/// name.
class pg_outbox {
public:
    pg_outbox(const setup& with, const servers& at);
    ~pg_outbox();
    pg_outbox(const pg_outbox&) = delete;
    pg_outbox& operator=(const pg_outbox&) = delete;

    /// Adds rows for the topic, then vacuums and checkpoints, so that every run begins in the same state.
    /// `value` is the value of row `n` as an expression of SQL; otherwise it is as long as `data` says.
    void fill(const dataset& data, std::string_view value = {}) const;

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::string table() const { return name_ + ".outbox"; }
    [[nodiscard]] std::string url() const;

    /// The relay of this outbox to Kafka.
    [[nodiscard]] std::vector<std::string> relay() const;

private:
    const setup& with_;
    const servers& at_;
    std::string name_;
};

inline constexpr int bench_partitions = 8;

}  // namespace millrace::bench
