#include "credentials/key_refresh.hpp"

#include <algorithm>
#include <utility>

namespace millrace::aws {

key_refresh::key_refresh(key_refresh_options options, std::function<std::uint64_t()> random)
    : options_(options), random_(std::move(random)), pauses_(options.retry_min, options.retry_max) {}

std::vector<key_refresh::action> key_refresh::step(mono_time now, const event& what) {
    std::visit([&](const auto& e) { on(now, e); }, what);
    return std::exchange(actions_, {});
}

std::optional<mono_time> key_refresh::wake() const {
    std::optional<mono_time> at;
    if (fetching_) {
        if (waiting_.empty() || !keys_) return at;
        const auto patient = waiting_.front().since + options_.wait_limit;
        if (outlive_ || patient < end_) at = patient;
    } else if (keys_ && renew_at_ != mono_time::max()) {
        at = std::max(renew_at_, next_fetch_);
    }
    return at;
}

bool key_refresh::usable(mono_time now) const {
    return keys_ && (outlive_ || now < end_);
}

nanoseconds key_refresh::spread(nanoseconds least, nanoseconds most) {
    const auto width = static_cast<std::uint64_t>((most - least).count()) + 1;
    return least + nanoseconds{static_cast<std::int64_t>(random_() % width)};
}

void key_refresh::on(mono_time now, const asked& what) {
    fetch_if_due(now);
    // Nobody waits for a source that has just failed while there are keys.
    const bool at_once = usable(now) && (now < block_at_ || trouble_ || !fetching_);
    if (at_once) {
        actions_.emplace_back(give{{what.by}, *keys_});
        return;
    }
    if (!fetching_ && (now >= next_fetch_ || !trouble_)) begin_fetch();
    if (!fetching_) {
        actions_.emplace_back(give{{what.by}, tl::unexpected(*trouble_)});
    } else if (waiting_.size() >= options_.waiting_max) {
        actions_.emplace_back(give{
            {what.by},
            fail(
                errc::throttled,
                "too many requests wait for AWS credentials; try again later",
                retry_advice::after_delay
            )});
    } else {
        waiting_.push_back({what.by, now});
    }
}

void key_refresh::on(mono_time now, const refused& what) {
    if (!keys_ || what.keys != *keys_) return;  // others have come meanwhile
    renew_at_ = std::min(renew_at_, now);
    block_at_ = std::min(block_at_, now);
    const auto paused = last_fetch_ + options_.refused_pause;
    next_fetch_ = trouble_ ? std::min(next_fetch_, paused) : paused;
    fetch_if_due(now);
}

void key_refresh::on(mono_time now, const timer& /*what*/) {
    fetch_if_due(now);
    give_patient(now);
}

void key_refresh::on(mono_time now, const fetched& what) {
    const bool over = what.lasts && *what.lasts <= nanoseconds{0};
    if (over && !what.outlive) {
        on(now,
           failed{error{
               errc::permission_denied,
               retry_advice::after_delay,
               false,
               "the AWS credentials that came are over already; is the clock of this machine right?"}});
        return;
    }
    fetching_ = false;
    last_fetch_ = now;
    trouble_.reset();
    pauses_.reset();
    keys_ = what.keys;
    outlive_ = what.outlive;
    schedule(now, what.lasts);
    give_all(*keys_);
}

void key_refresh::schedule(mono_time now, std::optional<nanoseconds> lasts) {
    next_fetch_ = now + options_.retry_min;
    end_ = renew_at_ = block_at_ = mono_time::max();
    if (!lasts || *lasts > mono_time::max() - now) return;
    end_ = now + *lasts;
    if (*lasts <= nanoseconds{0}) {
        next_fetch_ = renew_at_ = now + spread(options_.late_retry_min, options_.late_retry_max);
        return;
    }
    // Short-lived keys are used for half their time before others are asked for.
    const auto half = *lasts / 2;
    renew_at_ = now + std::max(*lasts - options_.ahead - spread(nanoseconds{0}, options_.jitter), half);
    block_at_ = now + std::max(*lasts - options_.block, half);
}

void key_refresh::on(mono_time now, const failed& what) {
    fetching_ = false;
    last_fetch_ = now;
    trouble_ = what.why;
    const bool late = usable(now) && now >= end_;
    next_fetch_ =
        now + (late ? spread(options_.late_retry_min, options_.late_retry_max) : pauses_.next(random_()));
    if (usable(now))
        give_all(*keys_);
    else
        give_all(tl::unexpected(what.why));
}

void key_refresh::begin_fetch() {
    fetching_ = true;
    actions_.emplace_back(fetch{});
}

void key_refresh::fetch_if_due(mono_time now) {
    if (!fetching_ && keys_ && now >= renew_at_ && now >= next_fetch_) begin_fetch();
}

void key_refresh::give_all(const result<aws_keys>& outcome) {
    if (waiting_.empty()) return;
    give to{{}, outcome};
    for (const auto& one : std::exchange(waiting_, {}))
        to.to.push_back(one.by);
    actions_.emplace_back(std::move(to));
}

/// Those that have waited long enough get the old keys while these hold.
void key_refresh::give_patient(mono_time now) {
    if (!usable(now)) keys_.reset();
    if (!keys_) return;
    const auto end = std::find_if(waiting_.begin(), waiting_.end(), [&](const waiting& one) {
        return now < one.since + options_.wait_limit;
    });
    if (end == waiting_.begin()) return;
    give to{{}, *keys_};
    for (auto one = waiting_.begin(); one != end; ++one)
        to.to.push_back(one->by);
    waiting_.erase(waiting_.begin(), end);
    actions_.emplace_back(std::move(to));
}

}  // namespace millrace::aws
