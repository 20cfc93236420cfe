#include "shard_inbox.hpp"

#include <algorithm>

namespace millrace {

void shard_inbox::push(report what) {
    const std::scoped_lock lock(mutex_);
    if (loop_ == nullptr) return;
    const auto* more = std::get_if<acknowledged>(&what);
    auto* last = reports_.empty() ? nullptr : std::get_if<acknowledged>(&reports_.back());
    if (more != nullptr && last != nullptr && more->first >= last->first && more->first <= last->last + 1) {
        last->last = std::max(last->last, more->last);
    } else {
        reports_.push_back(std::move(what));
    }
    if (std::exchange(woken_, true)) return;
    loop_->post([self = shared_from_this()] {
        if (self->wake_) self->wake_();
    });
}

std::vector<shard_inbox::report> shard_inbox::take() {
    const std::scoped_lock lock(mutex_);
    woken_ = false;
    return std::exchange(reports_, {});
}

void shard_inbox::close() {
    wake_ = nullptr;
    const std::scoped_lock lock(mutex_);
    loop_ = nullptr;
    reports_.clear();
}

acknowledger make_acknowledger(
    std::shared_ptr<shard_inbox> inbox,
    std::size_t size,
    ack_window::index first,
    std::shared_ptr<const std::vector<ack_window::index>> places
) {
    const auto sink =
        [inbox = std::move(inbox), size, first, places = std::move(places)](acknowledger::report said) {
            if (said.first >= size || said.last < said.first) return;
            const auto last = std::min(said.last, size - 1);
            const auto place = [&](std::size_t i) { return places ? (*places)[i] : first + i; };
            if (said.failed) {
                inbox->push(shard_inbox::failed{place(said.first), std::move(*said.failed)});
            } else if (!places) {
                inbox->push(shard_inbox::acknowledged{place(said.first), place(last)});
            } else {
                for (auto i = said.first; i <= last; ++i)
                    inbox->push(shard_inbox::acknowledged{place(i), place(i)});
            }
        };
    return acknowledger(size, sink);
}

}  // namespace millrace
