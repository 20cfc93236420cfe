/// What the outbox was asked to do for good with rows and has not done: since when, and why.
///
/// A failure and the lack of an answer count alike; whatever is done ends it. Pure.
#pragma once

#include "relay/silence.hpp"

#include <millrace/error.hpp>
#include <millrace/time.hpp>

#include <optional>
#include <utility>

namespace millrace {

struct overdue {
    const char* what{""};
    mono_time since{};
    std::optional<error> why;  ///< Empty while there is no answer.
};

class settling {
public:
    explicit settling(const char* what) : what_(what) {}

    void asked(mono_time now) { of_outbox_.asked(now); }
    void done(mono_time now) {
        of_outbox_.answered(now);
        why_.reset();
    }
    void failed(mono_time now, error why) {
        of_outbox_.failed(now);
        why_ = std::move(why);
    }
    void reset() {
        of_outbox_.reset();
        why_.reset();
    }

    [[nodiscard]] std::optional<overdue> late() const {
        if (!of_outbox_.since()) return std::nullopt;
        return overdue{what_, *of_outbox_.since(), why_};
    }

private:
    const char* what_;
    silence of_outbox_;
    std::optional<error> why_;
};

}  // namespace millrace
