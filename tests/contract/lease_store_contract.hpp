/// What every lease store must do, the fakes and the real ones alike. An implementation joins by a
/// `lease_world` and one INSTANTIATE line.
#pragma once

#include "contract/loop_host.hpp"
#include "port/lease_store.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::test {

/// Where the rows of one group lie; each store that it makes sees the same rows.
class lease_world {
public:
    virtual ~lease_world() = default;
    [[nodiscard]] virtual std::unique_ptr<lease_store> make(host& home) = 0;
};

struct lease_store_case {
    std::string name;
    std::function<std::unique_ptr<lease_world>()> make;
};

inline void PrintTo(const lease_store_case& which, std::ostream* out) {
    *out << which.name;
}

class LeaseStore : public testing::TestWithParam<lease_store_case> {
protected:
    result<void> write(lease_row row, std::optional<version> expected = {}) {
        return home.await<void>([&](completion<void> done) {
            store->write(std::move(row), expected, std::move(done));
        });
    }
    result<void> remove(lease_key key, version expected) {
        return home.await<void>([&](completion<void> done) {
            store->remove(std::move(key), expected, std::move(done));
        });
    }
    std::optional<lease_row> read(lease_key key) {
        auto found = home.await<std::optional<lease_row>>([&](auto done) {
            store->read(std::move(key), std::move(done));
        });
        EXPECT_TRUE(found) << found.error().detail;
        return found.value_or(std::nullopt);
    }
    std::vector<worker_row> workers() {
        return home.await<std::vector<worker_row>>([&](auto done) { store->list_workers(std::move(done)); }
        ).value();
    }
    std::vector<shard_row> shards() {
        return home.await<std::vector<shard_row>>([&](auto done) { store->list_shards(std::move(done)); }
        ).value();
    }

    static shard_row shard(std::string name, std::uint64_t v) {
        shard_row row;
        row.shard = shard_id{std::move(name)};
        row.version = version{v};
        row.write_id = write_id{v * 1'000};
        return row;
    }
    static worker_row worker(std::string session, std::uint64_t counter) {
        worker_row row;
        row.worker = worker_id{"w"};
        row.incarnation = incarnation{std::move(session)};
        row.counter = version{counter};
        row.write_id = write_id{counter};
        row.lease = std::chrono::seconds{10};
        return row;
    }
    static void expect_conflict(const result<void>& refused) {
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, errc::conflict) << refused.error().detail;
        EXPECT_FALSE(refused.error().in_doubt);
    }

    loop_host home;
    std::unique_ptr<lease_world> world = GetParam().make();
    std::unique_ptr<lease_store> store = world->make(home);
};

}  // namespace millrace::test
