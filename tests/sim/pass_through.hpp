/// Ports that hand everything on: a breakage overrides the one call that it spoils.
#pragma once

#include "port/event_sink.hpp"
#include "port/lease_store.hpp"
#include "port/outbox_source.hpp"
#include "port/record_source.hpp"
#include "session_driver.hpp"

#include <millrace/handler.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace millrace::sim {

class store_through : public lease_store {
public:
    explicit store_through(std::unique_ptr<lease_store> inner) : inner_(std::move(inner)) {}

    void list_workers(completion<std::vector<worker_row>> done) override {
        inner_->list_workers(std::move(done));
    }
    void list_shards(completion<std::vector<shard_row>> done) override {
        inner_->list_shards(std::move(done));
    }
    void read(lease_key key, completion<std::optional<lease_row>> done) override {
        inner_->read(std::move(key), std::move(done));
    }
    void write(lease_row row, std::optional<version> expected, completion<void> done) override {
        inner_->write(std::move(row), expected, std::move(done));
    }
    void remove(lease_key key, version expected, completion<void> done) override {
        inner_->remove(std::move(key), expected, std::move(done));
    }

protected:
    std::unique_ptr<lease_store> inner_;
    lifetime alive_;
};

class source_through : public record_source {
public:
    explicit source_through(std::unique_ptr<record_source> inner) : inner_(std::move(inner)) {}

    void list_shards(completion<stream_listing> done) override { inner_->list_shards(std::move(done)); }
    void open(shard_id shard, start_position start, completion<read_cursor> done) override {
        inner_->open(std::move(shard), start, std::move(done));
    }
    void read(shard_id shard, read_cursor cursor, read_limits limits, completion<read_reply> done) override {
        inner_->read(std::move(shard), std::move(cursor), limits, std::move(done));
    }
    void watch(std::function<void()> changed) override { inner_->watch(std::move(changed)); }

protected:
    std::unique_ptr<record_source> inner_;
    lifetime alive_;
};

class outbox_through : public outbox_source {
public:
    explicit outbox_through(std::unique_ptr<outbox_source> inner) : inner_(std::move(inner)) {}

    void fetch(fetch_request request, completion<fetch_reply> done) override {
        inner_->fetch(std::move(request), std::move(done));
    }
    void remove(std::vector<id_range> delivered, table_mark mark, epoch mine, completion<std::uint64_t> done)
        override {
        inner_->remove(std::move(delivered), mark, mine, std::move(done));
    }
    void bury(bury_request request, epoch mine, completion<void> done) override {
        inner_->bury(std::move(request), mine, std::move(done));
    }
    void start(completion<outbox_start> done) override { inner_->start(std::move(done)); }
    void watch(std::function<void()> changed) override { inner_->watch(std::move(changed)); }
    [[nodiscard]] bool signals_changes() const override { return inner_->signals_changes(); }

protected:
    std::unique_ptr<outbox_source> inner_;
    lifetime alive_;
};

class sink_through : public event_sink {
public:
    explicit sink_through(std::unique_ptr<event_sink> inner) : inner_(std::move(inner)) {}

    void publish(channel where, std::vector<outgoing_row> rows, epoch mine, completion<publish_outcome> done)
        override {
        inner_->publish(where, std::move(rows), mine, std::move(done));
    }
    void reset_main(completion<void> done) override { inner_->reset_main(std::move(done)); }
    void purge(completion<void> done) override { inner_->purge(std::move(done)); }
    [[nodiscard]] std::optional<error> suspect(const outbox_row& row) const override {
        return inner_->suspect(row);
    }
    [[nodiscard]] bool awaits(const outbox_row& row) const override { return inner_->awaits(row); }
    void watch(std::function<void()> changed) override { inner_->watch(std::move(changed)); }
    [[nodiscard]] capacity limits() const override { return inner_->limits(); }

protected:
    std::unique_ptr<event_sink> inner_;
    lifetime alive_;
};

class handler_through : public record_handler {
public:
    explicit handler_through(std::unique_ptr<record_handler> inner) : inner_(std::move(inner)) {}

    result<handled> handle(const std::shared_ptr<const record_batch>& batch, const delivery& how) override {
        return inner_->handle(batch, how);
    }

protected:
    std::unique_ptr<record_handler> inner_;
};

class session_through : public session_view {
public:
    explicit session_through(session_view& inner) : inner_(inner) {}

    [[nodiscard]] mono_time deadline(const incarnation& of) const override { return inner_.deadline(of); }
    void note_change() override { inner_.note_change(); }
    void loop_turned(mono_time now) override { inner_.loop_turned(now); }

protected:
    session_view& inner_;
};

}  // namespace millrace::sim
