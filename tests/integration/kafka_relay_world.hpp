/// The real relay between an outbox in memory and the real Kafka sink.
#pragma once

#include "contract/loop_host.hpp"
#include "kafka_sink.hpp"
#include "relay_driver.hpp"
#include "support/kafka_topics.hpp"
#include "support/services.hpp"

#include <millrace/event.hpp>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::test {

/// Rows are visible at once and in order of id.
class memory_outbox final : public outbox_source {
public:
    struct dead {
        std::int64_t id;
        std::string reason;
        std::string detail;
    };

    explicit memory_outbox(host& loop) : loop_(loop) {}

    std::int64_t put(event what, std::optional<wall_time> timestamp = std::nullopt) {
        rows_.emplace(++last_, std::pair(std::move(what), timestamp));
        return last_;
    }
    [[nodiscard]] std::size_t size() const { return rows_.size(); }
    [[nodiscard]] const std::vector<dead>& buried() const { return dead_; }

    void fetch(fetch_request request, completion<fetch_reply> done) override {
        fetch_reply reply;
        auto ahead = std::make_shared<row_batch>();
        std::size_t bytes = 0;
        for (auto at = rows_.upper_bound(request.after.value()); at != rows_.end(); ++at) {
            if (ahead->rows().size() >= request.rows_max || bytes >= request.bytes_max) {
                reply.more = request.rows_max > 0;
                break;
            }
            add(*ahead, *at);
            bytes += ahead->rows().back().bytes();
        }
        auto filled = std::make_shared<row_batch>();
        for (const auto& gap : request.gaps)
            for (auto at = rows_.lower_bound(gap.first.value());
                 at != rows_.end() && at->first <= gap.last.value();
                 ++at)
                add(*filled, *at);
        reply.ahead = std::move(ahead);
        reply.filled = std::move(filled);
        reply.table_identity = "memory";
        loop_.post([done = std::move(done), reply = std::move(reply)] { done(reply); });
    }

    void remove(std::vector<id_range> delivered, table_mark, epoch, completion<std::uint64_t> done) override {
        const auto before = rows_.size();
        for (const auto& range : delivered)
            rows_.erase(rows_.lower_bound(range.first.value()), rows_.upper_bound(range.last.value()));
        loop_.post([done = std::move(done), gone = before - rows_.size()] { done(gone); });
    }

    void bury(bury_request request, epoch, completion<void> done) override {
        for (const auto id : request.rows) {
            rows_.erase(id.value());
            dead_.push_back({id.value(), request.reason, request.detail});
        }
        loop_.post([done = std::move(done)] { done({}); });
    }

    void start(completion<outbox_start> done) override {
        loop_.post([done = std::move(done)] { done(outbox_start{}); });
    }
    void watch(std::function<void()>) override {}

private:
    using stored = std::map<std::int64_t, std::pair<event, std::optional<wall_time>>>;

    static void add(row_batch& batch, const stored::value_type& from) {
        const auto& [what, timestamp] = from.second;
        const auto keep = [&](const std::optional<std::string>& bytes) {
            return bytes ? std::optional(batch.store(*bytes)) : std::nullopt;
        };
        outbox_row row;
        row.id = row_id{from.first};
        row.topic = batch.store(what.topic);
        row.key = keep(what.key);
        row.value = keep(what.value);
        std::vector<record_header> headers;
        for (const auto& h : what.headers)
            headers.push_back({batch.store(h.name), keep(h.value)});
        row.headers = batch.store(std::move(headers));
        row.partition = what.partition;
        row.timestamp = timestamp;
        batch.add(row);
    }

    host& loop_;
    stored rows_;
    std::int64_t last_{0};
    std::vector<dead> dead_;
};

class kafka_relay_world {
public:
    explicit kafka_relay_world(
        const std::string& servers,
        const std::string& query = "",
        kafka_sink_options how = {},
        relay_options relay = {}
    )
        : servers_(servers),
          sink(kafka_sink::open(loop, parse_kafka_url("kafka://" + servers + query).value(), std::move(how))
                   .value()),
          driver(std::make_unique<relay_driver>(loop, outbox, *sink, relay, [] { return true; })) {}

    ~kafka_relay_world() { driver->halt(); }

    std::string topic(
        const std::string& name, int partitions = 1, const support::kafka_settings& settings = {}
    ) {
        auto unique = support::unique_name("kafka_" + name);
        admin().create_topic(unique, partitions, settings);
        return unique;
    }
    support::kafka_admin& admin() {
        if (!admin_) admin_ = std::make_unique<support::kafka_admin>(servers_);
        return *admin_;
    }

    std::int64_t put(const std::string& to, const std::string& key, const std::string& value) {
        return outbox.put({.topic = to, .key = key, .value = value});
    }
    void start() { driver->start(epoch{1}); }

    bool run_until_empty(milliseconds limit = milliseconds{30'000}) {
        return loop.run_until([this] { return outbox.size() == 0; }, limit);
    }

    /// Values by key, in the order of the topic, without later copies.
    std::map<std::string, std::vector<std::string>> delivered(const std::string& from) {
        std::map<std::string, std::vector<std::string>> by_key;
        std::set<std::pair<std::string, std::string>> seen;
        for (const auto& r : support::read_topic(servers_, from)) {
            const auto key = r.key.value_or("");
            if (seen.emplace(key, r.value.value_or("")).second) by_key[key].push_back(r.value.value_or(""));
        }
        return by_key;
    }

    loop_host loop;
    memory_outbox outbox{loop};

private:
    std::string servers_;
    std::unique_ptr<support::kafka_admin> admin_;

public:
    std::unique_ptr<kafka_sink> sink;
    std::unique_ptr<relay_driver> driver;
};

}  // namespace millrace::test
