#include "shard/delivery.hpp"

#include "assert.hpp"

#include <algorithm>
#include <utility>

namespace millrace {

shard_delivery::shard_delivery(const shard_options& options, shard_id shard)
    : options_(options), shard_(std::move(shard)), backoff_(options.retry_min, options.retry_max) {}

bool shard_delivery::last_attempt(const suspect& s) const {
    return options_.on_failure == failure_policy::dead_letter && s.attempts + 1 >= options_.dead_letter_after;
}

void shard_delivery::push(std::shared_ptr<const record_batch> batch) {
    if (!stopped_) window_.push(std::move(batch));
}

void shard_delivery::end_read() {
    if (!stopped_) end_read_ = true;
}

shard_delivery::action shard_delivery::next(mono_time now) {
    if (draining_ || stopped_ || calling_ || burying_) return rest{};
    if (waiting_ > 0) return next_suspect(now);
    if (next_ < window_.end()) return hand_new();
    return rest{};
}

shard_delivery::action shard_delivery::next_suspect(mono_time now) {
    auto at = std::find_if(suspects_.begin(), suspects_.end(), [](const auto& s) { return s.second.waits; });
    MILLRACE_ASSERT(at != suspects_.end());
    const auto& first = at->second;
    const bool given_up = options_.on_failure == failure_policy::dead_letter && first.verdict &&
                          first.attempts >= options_.dead_letter_after;
    const auto due = given_up ? bury_at_ : retry_at_;
    if (now < due) return wait{due};
    if (given_up) {
        burying_ = at->first;
        const auto place = window_.at(at->first);
        return bury{place.batch, place.at, first.why};
    }
    std::vector<index> which;
    const bool alone = last_attempt(first);
    const auto most = alone ? 1 : options_.batch_records;
    for (; at != suspects_.end() && which.size() < most; ++at) {
        if (!at->second.waits) continue;
        if (!alone && last_attempt(at->second)) break;
        which.push_back(at->first);
    }
    return hand_again(which);
}

shard_delivery::hand shard_delivery::hand_new() {
    const auto place = window_.at(next_);
    const auto records = place.batch->records();
    const auto count = std::min(options_.batch_records, records.size() - place.at);
    hand result{.batch = place.batch, .first = next_};
    if (count < records.size()) {
        auto part = std::make_shared<record_batch>(shard_);
        part->reserve(count);
        for (const auto& r : records.subspan(place.at, count))
            part->add(r);
        part->share(place.batch);
        result.batch = std::move(part);
    }
    calling_ = call{next_, count, nullptr, 1};
    next_ += count;
    counters_.handed += count;
    return result;
}

shard_delivery::hand shard_delivery::hand_again(const std::vector<index>& which) {
    auto part = std::make_shared<record_batch>(shard_);
    part->reserve(which.size());
    const record_batch* shared = nullptr;
    std::uint32_t attempt = 1;
    for (const auto i : which) {
        const auto place = window_.at(i);
        part->add(place.batch->records()[place.at]);
        if (shared != place.batch.get()) part->share(place.batch);
        shared = place.batch.get();
        auto& s = suspects_.at(i);
        s.waits = false;
        attempt = std::max(attempt, s.attempts + 1);
    }
    waiting_ -= which.size();
    counters_.handed += which.size();
    auto places = std::make_shared<const std::vector<index>>(which);
    calling_ = call{which.front(), which.size(), places, attempt};
    return {std::move(part), which.front(), std::move(places), attempt};
}

void shard_delivery::acknowledge(index first, index last) {
    if (next_ == 0 || first >= next_) return;
    last = std::min(last, next_ - 1);  // only what was handed over
    const auto fresh = window_.acknowledge(first, last);
    if (fresh == 0) return;
    backoff_.reset();  // it gets on
    counters_.acknowledged += fresh;
    for (auto at = suspects_.lower_bound(first); at != suspects_.end() && at->first <= last;) {
        waiting_ -= at->second.waits ? 1 : 0;
        at = suspects_.erase(at);
    }
}

void shard_delivery::blame(index which, bool verdict, const error& why) {
    auto& s = suspects_[which];
    if (s.waits) return;  // its failure is known
    ++s.attempts;
    s.waits = true;
    s.verdict = verdict;
    s.why = why;
    ++waiting_;
}

void shard_delivery::after_failure(mono_time now, std::uint64_t random, const error& why) {
    if (ended_early(why)) return;  // what is open comes again elsewhere
    ++counters_.failures;
    if (options_.on_failure == failure_policy::stop) return stop(why);
    retry_at_ = now + backoff_.next(random);
    bury_at_ = now;
}

void shard_delivery::stop(const error& why) {
    if (!stopped_) stopped_ = why;
    window_.truncate(next_);
    end_read_ = false;
}

void shard_delivery::fail(mono_time now, std::uint64_t random, index which, const error& why) {
    if (which >= next_ || window_.acknowledged(which)) return;
    if (const auto known = suspects_.find(which); known != suspects_.end() && known->second.waits) return;
    blame(which, true, why);
    after_failure(now, random, why);
}

void shard_delivery::returned(mono_time now, std::uint64_t random, const result<handled>& how) {
    MILLRACE_ASSERT(calling_);
    const auto ended = *std::exchange(calling_, std::nullopt);
    if (how && *how == handled::later) return;
    const auto still_open = [&](index i) {
        if (window_.acknowledged(i)) return false;
        const auto known = suspects_.find(i);
        return known == suspects_.end() || !known->second.waits;
    };
    if (how) {
        if (!ended.places && waiting_ == 0) return acknowledge(ended.first, ended.first + ended.records - 1);
        for (std::size_t i = 0; i < ended.records; ++i)
            if (const auto place = place_of(ended, i); still_open(place)) acknowledge(place, place);
        return;
    }
    std::vector<index> open;
    for (std::size_t i = 0; i < ended.records; ++i)
        if (const auto place = place_of(ended, i); still_open(place)) open.push_back(place);
    for (const auto place : open)
        blame(place, ended.records == 1, how.error());
    after_failure(now, random, how.error());
}

void shard_delivery::not_called() {
    MILLRACE_ASSERT(calling_);
    const auto ended = *std::exchange(calling_, std::nullopt);
    counters_.handed -= ended.records;
    if (!ended.places) {
        next_ = ended.first;
        if (stopped_) window_.truncate(next_);
        return;
    }
    for (const auto place : *ended.places) {
        const auto known = suspects_.find(place);
        if (known == suspects_.end() || std::exchange(known->second.waits, true)) continue;
        ++waiting_;
    }
}

void shard_delivery::buried(mono_time now, std::uint64_t random, const result<void>& how) {
    MILLRACE_ASSERT(burying_);
    const auto which = *std::exchange(burying_, std::nullopt);
    if (!how) {
        bury_at_ = now + backoff_.next(random);
        return;
    }
    ++counters_.dead_lettered;
    acknowledge(which, which);
    retry_at_ = now;
    bury_at_ = now;
}

bool shard_delivery::settled() const {
    return !calling_ && !burying_ && window_.unacknowledged() - unhanded() == waiting_;
}

std::optional<wall_time> shard_delivery::oldest_arrival() const {
    if (window_.size() == 0) return std::nullopt;
    const auto place = window_.at(window_.low());
    return place.batch->records()[place.at].arrival;
}

std::optional<shard_delivery::progress> shard_delivery::take_progress() {
    if (window_.low() == reported_) return std::nullopt;
    const auto records = window_.low() - std::exchange(reported_, window_.low());
    return progress{*window_.reached(), records};
}

}  // namespace millrace
