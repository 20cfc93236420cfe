#include "read_memory.hpp"

namespace millrace {

/// Owns a batch together with its place in the books.
struct read_memory::counted {
    counted(
        std::shared_ptr<const record_batch> kept, std::shared_ptr<read_memory> in, member of, std::size_t size
    )
        : batch(std::move(kept)), memory(std::move(in)), who(of), bytes(size) {}
    ~counted() {
        batch.reset();
        memory->give_back(who, bytes);
    }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;

    std::shared_ptr<const record_batch> batch;
    std::shared_ptr<read_memory> memory;
    member who;
    std::size_t bytes;
};

std::shared_ptr<const record_batch> read_memory::reservation::count(std::shared_ptr<const record_batch> batch
) {
    const auto bytes = batch->bytes();
    memory_->budget_.settle(who_, std::exchange(bytes_, 0), bytes);
    if (memory_->budget_.anyone_waits()) memory_->give_back(who_, 0);  // less was read than set aside
    const auto* raw = batch.get();
    return {std::make_shared<counted>(std::move(batch), memory_, who_, bytes), raw};
}

std::shared_ptr<read_memory::reservation> read_memory::reserve(member who, std::size_t want) {
    if (requests_ >= requests_max_) {
        if (waits_.insert(who).second) waiting_.push_back(who);
        return nullptr;
    }
    const auto granted = budget_.reserve(who, want);
    if (!granted) return nullptr;
    ++requests_;
    return std::make_shared<reservation>(shared_from_this(), who, *granted);
}

void read_memory::leave(member who) {
    budget_.leave(who);
    give_back(who, 0);  // its share is free for others
}

void read_memory::give_back(member who, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (loop_ == nullptr) return;
    returned_.emplace_back(who, bytes);
    pick_up_later();
}

void read_memory::request_over(member who, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (loop_ == nullptr) return;
    if (bytes > 0) returned_.emplace_back(who, bytes);
    ++requests_over_;
    pick_up_later();
}

void read_memory::pick_up_later() {
    if (std::exchange(posted_, true)) return;
    loop_->post([self = shared_from_this()] { self->pick_up(); });
}

void read_memory::pick_up() {
    std::vector<std::pair<member, std::size_t>> returned;
    {
        const std::scoped_lock lock(mutex_);
        posted_ = false;
        returned.swap(returned_);
        requests_ -= std::exchange(requests_over_, 0);
    }
    for (const auto& [who, bytes] : returned)
        budget_.give_back(who, bytes);
    while (turn_) {
        const auto who = budget_.next();
        if (!who) break;
        turn_(*who);
    }
    while (turn_ && requests_ < requests_max_ && !waiting_.empty()) {
        const auto who = waiting_.front();
        waiting_.pop_front();
        waits_.erase(who);
        turn_(who);
    }
}

void read_memory::close() {
    turn_ = nullptr;
    const std::scoped_lock lock(mutex_);
    loop_ = nullptr;
}

}  // namespace millrace
