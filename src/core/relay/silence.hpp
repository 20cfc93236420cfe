/// Since when somebody who is asked for something has not answered.
///
/// A silence begins with a request that finds none outstanding, with the latest answer while others are
/// outstanding, or with a failure that is no word of his; any answer ends it. A refusal is an answer. Pure.
#pragma once

#include <millrace/time.hpp>

#include <cstddef>
#include <optional>

namespace millrace {

class silence {
public:
    void asked(mono_time now) {
        if (!since_) since_ = now;
        ++outstanding_;
    }
    void answered(mono_time now) {
        settle();
        failed_ = false;
        answered_ = now;
        since_ = outstanding_ > 0 ? std::optional{now} : std::nullopt;
    }
    void failed(mono_time now) {
        settle();
        failed_ = true;
        if (!since_) since_ = now;
    }

    /// He was not asked after all.
    void withdrawn() {
        settle();
        if (outstanding_ == 0 && !failed_) since_.reset();
    }

    /// What was asked so far counts no more, nor does what was answered.
    void reset() { *this = silence{}; }

    [[nodiscard]] const std::optional<mono_time>& since() const noexcept { return since_; }
    [[nodiscard]] const std::optional<mono_time>& last_answer() const noexcept { return answered_; }

private:
    void settle() {
        if (outstanding_ > 0) --outstanding_;
    }

    std::size_t outstanding_{0};
    bool failed_{false};  ///< The latest that he had to say.
    std::optional<mono_time> since_;
    std::optional<mono_time> answered_;
};

}  // namespace millrace
