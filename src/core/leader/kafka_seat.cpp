#include "leader/kafka_seat.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include <fmt/core.h>

namespace millrace {

namespace {

// So that some may be late without costing the lead.
constexpr int beats_in_a_timeout = 5;
constexpr std::size_t sent_max = 64;

}  // namespace

std::optional<std::pair<std::int64_t, std::string_view>> parse_heartbeat(std::string_view value) {
    std::int64_t stamp = 0;
    const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), stamp);
    const auto digits = static_cast<std::size_t>(end - value.data());
    if (fault != std::errc{} || digits >= value.size() || value[digits] != '%') return std::nullopt;
    return std::pair{stamp, value.substr(digits + 1)};
}

kafka_seat::kafka_seat(kafka_seat_options options) : options_(std::move(options)) {}

std::vector<kafka_seat::action> kafka_seat::step(mono_time now, wall_time wall, const event& what) {
    now_ = now;
    wall_ = wall;
    std::visit([this](const auto& happened) { on(happened); }, what);
    settle();
    return std::exchange(actions_, {});
}

mono_time kafka_seat::deadline() const {
    return leads_ && confirmed_ ? *confirmed_ + options_.heartbeat_timeout : mono_time::min();
}

std::optional<mono_time> kafka_seat::wake() const {
    if (phase_ == phase::away) return back_at_;
    std::optional<mono_time> next;
    if (owner_ && phase_ == phase::member) next = next_beat_;
    if (leads_) next = std::min(next.value_or(mono_time::max()), deadline());
    return next;
}

void kafka_seat::on(const begin&) {
    if (phase_ == phase::idle && !stopping_) go();
}

void kafka_seat::go() {
    phase_ = phase::member;
    leave_asked_ = false;
    actions_.emplace_back(join{});
}

void kafka_seat::on(const assigned& what) {
    if (leads_) lost("the group has assigned the partitions of the leader topic anew");
    owner_ = what.first;
    confirmed_.reset();
    sent_.clear();
    contested_ = false;
    next_beat_ = now_;
}

void kafka_seat::on(const revoked& what) {
    owner_ = false;
    owes_unassign_ = true;
    if (!leads_) return;
    if (!what.in_order) return lost("the group has given partition 0 of the leader topic to another");
    if (!retiring_) actions_.emplace_back(retire{});
    retiring_ = true;
}

void kafka_seat::on(const record_seen& what) {
    const auto beat = parse_heartbeat(what.value);
    if (!beat) return;
    if (beat->second != options_.name) return another_beats();
    const auto ours =
        std::find_if(sent_.begin(), sent_.end(), [&](const auto& one) { return one.first == beat->first; });
    if (ours == sent_.end()) return;
    confirmed_ = std::max(confirmed_.value_or(ours->second), ours->second);
    sent_.erase(sent_.begin(), ours + 1);
    const bool fresh = now_ < *confirmed_ + options_.heartbeat_timeout;
    if (leads_ || !owner_ || !fresh || phase_ != phase::member || stopping_) return;
    leads_ = true;
    contested_ = false;
    actions_.emplace_back(lead{});
}

// Behind own ones it is that of a successor, which leads or is about to: a leader that the coordinator does
// not reach hears of it here first. Whoever is right hears from the group before the pause is over.
void kafka_seat::another_beats() {
    if (!leads_ && !contested_) return;
    contested_ = true;
    next_beat_ = now_ + options_.heartbeat_timeout;
    sent_.clear();
    if (leads_)
        lost("another member of the group writes heartbeats to the leader topic behind those of this relay");
}

void kafka_seat::on(const drained&) {
    if (!retiring_) return;
    retiring_ = leads_ = false;
}

void kafka_seat::on(const give_way&) {
    if (phase_ != phase::member || !leads_ || retiring_) return;
    phase_ = phase::leaving;
    retiring_ = true;
    actions_.emplace_back(retire{});
}

void kafka_seat::on(const stop&) {
    if (std::exchange(stopping_, true)) return;
    if (phase_ != phase::member && phase_ != phase::leaving) return;
    phase_ = phase::leaving;
    if (leads_ && !retiring_) {
        retiring_ = true;
        actions_.emplace_back(retire{});
    }
}

void kafka_seat::on(const left&) {
    owner_ = owes_unassign_ = false;
    if (leads_) lost("the group was left");
    phase_ = phase::away;
    back_at_ = now_ + options_.away;
}

void kafka_seat::on(const broken& what) {
    if (phase_ != phase::member) return;
    owner_ = false;
    if (leads_) lost(what.why.detail);
    phase_ = phase::leaving;
}

void kafka_seat::on(const tick&) {
    if (leads_ && now_ >= deadline()) {
        lost(fmt::format(
            "no heartbeat came back from the leader topic for {} ms; see whether the brokers answer",
            std::chrono::floor<milliseconds>(options_.heartbeat_timeout).count()
        ));
    }
    if (owner_ && phase_ == phase::member && now_ >= next_beat_) {
        next_beat_ = now_ + options_.heartbeat_timeout / beats_in_a_timeout;
        last_stamp_ = std::max(
            last_stamp_ + 1, std::chrono::duration_cast<nanoseconds>(wall_.time_since_epoch()).count()
        );
        if (sent_.size() == sent_max) sent_.pop_front();
        sent_.emplace_back(last_stamp_, now_);
        actions_.emplace_back(send{fmt::format("{}%{}", last_stamp_, options_.name)});
    }
    if (phase_ == phase::away && !stopping_ && now_ >= back_at_) go();
}

void kafka_seat::lost(std::string why) {
    retiring_ = leads_ = false;
    actions_.emplace_back(lose{{errc::not_owner, retry_advice::after_delay, false, std::move(why)}});
}

// What may only be done once nothing is led any more.
void kafka_seat::settle() {
    if (leads_) return;
    if (std::exchange(owes_unassign_, false)) actions_.emplace_back(unassign{});
    if (phase_ == phase::leaving && !std::exchange(leave_asked_, true)) actions_.emplace_back(leave{});
    const bool out = phase_ == phase::idle || phase_ == phase::away;
    if (!stopping_ || !out) return;
    phase_ = phase::stopped;
    actions_.emplace_back(stopped{});
}

}  // namespace millrace
