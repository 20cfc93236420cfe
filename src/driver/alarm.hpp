/// A timer of a host that is set anew, cancelled, or forgotten with its owner. Lives on that host.
#pragma once

#include "port/host.hpp"

#include <millrace/time.hpp>

#include <functional>
#include <optional>
#include <utility>

namespace millrace {

class alarm {
public:
    explicit alarm(host& loop) : loop_(loop) {}
    ~alarm() { cancel(); }
    alarm(const alarm&) = delete;
    alarm& operator=(const alarm&) = delete;

    void set(mono_time when, std::function<void()> what) {
        cancel();
        timer_ = loop_.call_at(when, [this, what = std::move(what)] {
            timer_.reset();
            what();
        });
    }
    void cancel() {
        if (timer_) loop_.cancel(*std::exchange(timer_, std::nullopt));
    }

private:
    host& loop_;
    std::optional<host::timer> timer_;
};

}  // namespace millrace
