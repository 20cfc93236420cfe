/// What every `record_source` must do, and what those must that keep all of a record, limit a read by bytes,
/// can be trimmed and tell of news. An implementation joins by a `source_world` and an INSTANTIATE line a
/// suite.
#pragma once

#include "contract/await.hpp"
#include "port/record_source.hpp"

#include <millrace/error.hpp>
#include <millrace/event.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::test {

/// A stream with two shards that together cover all hashes, and the means to change it.
class source_world {
public:
    virtual ~source_world() = default;

    [[nodiscard]] virtual record_source& source() = 0;

    /// Turns the loop until `condition` holds; false when it does not within some seconds.
    virtual bool run_until(const std::function<bool()>& condition) = 0;

    /// Lets the clock of the stream go on.
    virtual void pass(milliseconds span) = 0;

    virtual void append(
        const std::optional<std::string>& key,
        const std::optional<std::string>& data,
        const std::vector<header>& headers
    ) = 0;
    virtual void split(const shard_id& shard) = 0;
    virtual void merge(const shard_id& lower, const shard_id& upper) = 0;

    /// Removes the oldest records of the shard, where that is possible.
    virtual void trim(const shard_id& shard, std::size_t records) = 0;

    /// Of the clock of listings.
    [[nodiscard]] virtual milliseconds clock_step() const { return milliseconds{0}; }
};

using make_source_world = std::function<std::unique_ptr<source_world>()>;

class RecordSourceContract : public testing::TestWithParam<make_source_world> {
protected:
    template <class T>
    result<T> await(const std::function<void(completion<T>)>& request) {
        return await_once<T>(request, [this](const auto& done) { return world->run_until(done); });
    }

    result<stream_listing> list() {
        return await<stream_listing>([this](auto done) { source.list_shards(std::move(done)); });
    }
    result<read_cursor> open(const shard_id& shard, const start_position& start = from::trim_horizon{}) {
        return await<read_cursor>([&](auto done) { source.open(shard, start, std::move(done)); });
    }
    result<read_reply> read(const shard_id& shard, const read_cursor& cursor, read_limits limits = {}) {
        return await<read_reply>([&](auto done) { source.read(shard, cursor, limits, std::move(done)); });
    }

    /// What was appended, as text: the data of each record, `-` for a tombstone.
    static std::string text(const read_reply& reply);

    /// Reads on until nothing new comes; `ended` says whether the end of the shard was met.
    struct everything {
        std::string data;
        std::vector<position> positions;
        bool ended{false};
        std::optional<read_cursor> next;
    };
    everything read_all(const shard_id& shard, read_cursor cursor, read_limits limits = {});
    everything read_all(const shard_id& shard) { return read_all(shard, open(shard).value()); }

    void append(const std::string& key, const std::string& data) { world->append(key, data, {}); }

    /// A key that goes to the shard, found by trying.
    std::string key_for(const shard_id& shard);

    std::unique_ptr<source_world> world{GetParam()()};
    record_source& source{world->source()};
    const shard_id first{list()->shards.at(0).shard};
    const shard_id second{list()->shards.at(1).shard};
};

/// Headers, absent keys and data, keys that are not UTF-8; limits in bytes; trimming; `watch`.
class FullRecordSourceContract : public RecordSourceContract {};

}  // namespace millrace::test
