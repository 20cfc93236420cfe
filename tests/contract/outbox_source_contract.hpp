/// What every outbox must do, the fakes and the real ones alike.
#pragma once

#include "contract/await.hpp"
#include "port/outbox_source.hpp"

#include <millrace/event.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::test {

/// A table, seen from all sides: application, relay, operator.
class outbox_world {
public:
    virtual ~outbox_world() = default;

    [[nodiscard]] virtual outbox_source& source() = 0;

    /// Turns the source's host until the condition holds; false when it did not in a fair time.
    virtual bool run_until(const std::function<bool()>& condition) = 0;

    virtual row_id put(const event& what) = 0;
    virtual row_id put_malformed(const event& what) = 0;

    /// Leaves ids unused.
    virtual void skip_ids(std::int64_t count) = 0;

    /// A row under an id of the application's choice.
    virtual void put_at(row_id id, const event& what) = 0;

    /// The epoch in the lease row.
    virtual void own(epoch owner) = 0;
    virtual std::size_t replay(const lane_key& lane) = 0;
    virtual std::size_t drop(const lane_key& lane) = 0;

    /// The table is dropped and made anew, empty; ids start at the lowest again.
    virtual void recreate() = 0;

    struct dead {
        row_id id;
        std::string reason;
        std::string detail;
        std::uint32_t attempts;
        bool operator==(const dead&) const = default;
    };
    [[nodiscard]] virtual std::vector<dead> dead_rows() = 0;
};

struct outbox_source_case {
    std::string name;
    std::function<std::unique_ptr<outbox_world>()> make;
    bool remembers_low_water{true};
    bool signals_changes{true};
};

inline void PrintTo(const outbox_source_case& which, std::ostream* out) {
    *out << which.name;
}

/// The fixture of the suite; implementations that need a server instantiate it apart.
struct OutboxSource : testing::TestWithParam<outbox_source_case> {
    template <class T, class F>
    result<T> await(F request) {
        return await_once<T>(request, [this](const auto& done) { return world->run_until(done); });
    }
    fetch_reply fetch(fetch_request request = {}) {
        auto reply =
            await<fetch_reply>([&](auto done) { source.fetch(std::move(request), std::move(done)); });
        EXPECT_TRUE(reply) << reply.error().detail;
        identity = reply->table_identity;
        return reply.value();
    }
    result<std::uint64_t> remove(std::vector<id_range> ranges, epoch e = owner, row_id low_water = {}) {
        return await<std::uint64_t>([&](auto done) {
            source.remove(std::move(ranges), {low_water, identity}, e, std::move(done));
        });
    }
    result<void> bury(bury_request request, epoch e = owner) {
        request.table_identity = identity;
        return await<void>([&](auto done) { source.bury(std::move(request), e, std::move(done)); });
    }
    outbox_start start() {
        return await<outbox_start>([&](auto done) { source.start(std::move(done)); }).value();
    }
    std::vector<lane_key> parked() { return start().parked; }
    static std::vector<std::int64_t> ids(const std::shared_ptr<const row_batch>& batch) {
        std::vector<std::int64_t> found;
        for (const auto& row : batch->rows())
            found.push_back(row.id.value());
        return found;
    }
    /// The hint is remembered now and then only, and may be forgotten.
    row_id hint_after(std::size_t tries, row_id low_water, epoch e = owner) {
        for (std::size_t i = 0; i < tries; ++i) {
            EXPECT_TRUE(remove({}, e, low_water));
            if (const auto hint = start().low_water; hint != row_id{}) return hint;
        }
        return {};
    }
    std::vector<std::int64_t> rows() { return ids(fetch().ahead); }
    std::int64_t put(const event& what) { return world->put(what).value(); }
    static event an_event(std::string key) { return {"orders", std::move(key), "v", {}, std::nullopt}; }
    static bury_request request(
        std::vector<std::int64_t> which, std::string key, bury_request::condition when
    ) {
        bury_request made;
        for (const auto id : which)
            made.rows.emplace_back(id);
        made.lane = {"orders", std::move(key), std::nullopt};
        made.when = when;
        made.reason = "refused_record";
        made.detail = "too large";
        made.attempts = 2;
        return made;
    }

    static constexpr std::uint64_t owner_epoch = 7;
    static inline const epoch owner{owner_epoch};
    static inline const epoch stale{owner_epoch - 1};

    std::unique_ptr<outbox_world> world = [] {
        auto made = GetParam().make();
        made->own(owner);
        return made;
    }();
    outbox_source& source = world->source();
    std::string identity;  ///< Of the table that was read last.
};

}  // namespace millrace::test
