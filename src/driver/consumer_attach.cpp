#include "consumer_driver.hpp"
#include "shard_driver.hpp"

#include <utility>

namespace millrace {

namespace {

/// The leases of a group.
class group_leases final : public shard_leases {
public:
    explicit group_leases(group_driver& group) : group_(group) {}

    result<void> advance(const shard_id& shard, epoch e, checkpoint reached, std::uint64_t records) override {
        return group_.advance(shard, e, std::move(reached), records);
    }
    void finish(const shard_id& shard, epoch e, completion<void> done) override {
        group_.finish(shard, e, std::move(done));
    }
    void release(const shard_id& shard, epoch e, completion<void> done) override {
        group_.release(shard, e, std::move(done));
    }
    void discover_soon() override { group_.discover_soon(); }
    [[nodiscard]] bool unlisted(const shard_id& shard) const override { return group_.unlisted(shard); }
    [[nodiscard]] std::optional<stream_moment> stream() const override { return group_.stream(); }
    [[nodiscard]] nanoseconds drain_limit() const override { return group_.drain_limit(); }

private:
    group_driver& group_;
};

}  // namespace

void consumer_driver::attach(group_driver& group) {
    attach(std::make_unique<group_leases>(group));
}

}  // namespace millrace
