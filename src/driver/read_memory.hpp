/// Counts the bytes of all batches that were read and are still referenced, over all shards of a consumer,
/// and the requests under way.
///
/// The rules stand in `byte_budget`; this adds what threads need: a batch gives its bytes back when its last
/// pointer goes, wherever that is, and a shard that waits for memory is woken on the loop.
/// Thread contract: the loop, except where said otherwise.
#pragma once

#include "port/host.hpp"
#include "shard/byte_budget.hpp"

#include <millrace/record.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

namespace millrace {

class read_memory : public std::enable_shared_from_this<read_memory> {
public:
    using member = byte_budget::member;

    /// Bytes set aside for a read under way; what is not turned into a batch goes back with it.
    class reservation {
    public:
        reservation(std::shared_ptr<read_memory> memory, member who, std::size_t bytes)
            : memory_(std::move(memory)), who_(who), bytes_(bytes) {}
        ~reservation() { memory_->request_over(who_, bytes_); }
        reservation(const reservation&) = delete;
        reservation& operator=(const reservation&) = delete;

        [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

        /// The same batch, counted until its last pointer is gone.
        [[nodiscard]] std::shared_ptr<const record_batch> count(std::shared_ptr<const record_batch> batch);

    private:
        std::shared_ptr<read_memory> memory_;
        member who_;
        std::size_t bytes_;
    };

    /// `turn` is called on the loop for a member that was refused and may try again.
    read_memory(host& loop, std::size_t limit, std::size_t requests_max, std::function<void(member)> turn)
        : loop_(&loop), turn_(std::move(turn)), budget_(limit), requests_max_(requests_max) {}

    [[nodiscard]] member join() { return budget_.join(); }
    void leave(member who);

    /// Room for a request under way, which is over when the reservation goes. Null: refused, and a turn
    /// follows.
    [[nodiscard]] std::shared_ptr<reservation> reserve(member who, std::size_t want);

    [[nodiscard]] std::size_t in_use() const noexcept { return budget_.in_use(); }

    /// No further turns; the host is not touched any more.
    void close();

private:
    struct counted;

    void give_back(member who, std::size_t bytes);     // any thread
    void request_over(member who, std::size_t bytes);  // any thread
    void pick_up_later();                              // under the mutex
    void pick_up();

    std::mutex mutex_;
    host* loop_;  // null once closed
    bool posted_{false};
    std::vector<std::pair<member, std::size_t>> returned_;
    std::size_t requests_over_{0};

    std::function<void(member)> turn_;
    byte_budget budget_;
    std::size_t requests_max_;
    std::size_t requests_{0};
    std::deque<member> waiting_;  // for the end of a request
    std::unordered_set<member> waits_;
};

}  // namespace millrace
