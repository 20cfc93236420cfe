/// Shares one memory limit among the shards of a process.
///
/// A shard reserves before it reads and gives back the difference afterwards. Half of the limit is divided
/// into equal shares that nobody else may use, the other half goes to whoever comes first, and nobody gets
/// more than a quarter of the whole (or its share, if that is more). So a shard whose handler is stuck does
/// not starve the others, and one that holds nothing can read, if only a little at a time. Shares shrink when
/// shards join: what others hold beyond their new share must come back first. Since a read returns at least
/// one record, however large, reads under way may bring more than they reserved and pass the limit; then
/// nothing is granted until that is made good. When nothing is in use, anything is granted.
/// Thread contract: none; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

namespace millrace {

class byte_budget {
public:
    using member = std::uint64_t;

    explicit byte_budget(std::size_t limit) : limit_(limit) {}

    [[nodiscard]] member join();

    /// What it holds stays counted until it is given back.
    void leave(member who);

    /// Grants up to `want` bytes (above zero), or nothing: then the member is queued, once, for `next`.
    [[nodiscard]] std::optional<std::size_t> reserve(member who, std::size_t want);

    /// A reservation became `actual` bytes, more or fewer.
    void settle(member who, std::size_t reserved, std::size_t actual);

    /// Also after the member has left.
    void give_back(member who, std::size_t bytes);

    /// The longest waiting member whose `reserve` would be granted now; it is taken from the queue.
    [[nodiscard]] std::optional<member> next();

    [[nodiscard]] bool anyone_waits() const noexcept { return !waiting_.empty(); }
    [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }
    [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

private:
    struct account {
        std::size_t held{0};
        std::size_t wanted{0};
        bool waits{false};
    };

    [[nodiscard]] std::size_t share() const;
    [[nodiscard]] std::size_t unused_share(const account& a) const;
    [[nodiscard]] std::size_t grantable(const account& a, std::size_t want) const;
    void set_held(account& a, std::size_t held);
    void recount();

    std::size_t limit_;
    std::size_t in_use_{0};
    std::size_t kept_free_{0};  // the unused parts of all shares
    member next_member_{1};
    std::unordered_map<member, account> accounts_;
    std::deque<member> waiting_;
};

}  // namespace millrace
