/// Waits for outcomes that arrive on another thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace millrace::test {

/// Collects what callbacks are given, in the order in which they are called.
template <class T>
class outcomes {
public:
    /// A callback that may outlive this object.
    [[nodiscard]] auto callback() {
        return [kept = kept_](T value) {
            {
                const std::lock_guard lock(kept->mutex);
                kept->values.push_back(std::move(value));
            }
            kept->more.notify_all();
        };
    }

    /// Waits until there are so many, and takes all.
    [[nodiscard]] std::vector<T> take(std::size_t count) {
        std::unique_lock lock(kept_->mutex);
        const auto limit = std::chrono::seconds{30};
        if (!kept_->more.wait_for(lock, limit, [&] { return kept_->values.size() >= count; })) {
            throw std::runtime_error("no outcome came within 30 s");
        }
        return std::exchange(kept_->values, {});
    }
    [[nodiscard]] T next() { return std::move(take(1).front()); }

    [[nodiscard]] std::size_t count() const {
        const std::lock_guard lock(kept_->mutex);
        return kept_->values.size();
    }

private:
    struct state {
        std::mutex mutex;
        std::condition_variable more;
        std::vector<T> values;
    };
    std::shared_ptr<state> kept_ = std::make_shared<state>();
};

}  // namespace millrace::test
