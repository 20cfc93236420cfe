// How the main producer is given up and made anew.

#include "kafka_error.hpp"
#include "main_line.hpp"

#include <thread>

namespace millrace::kafka {

namespace {

constexpr auto purge_every = std::chrono::milliseconds{20};
constexpr auto purge_limit = std::chrono::seconds{5};
constexpr auto blocked_look = std::chrono::milliseconds{100};

}  // namespace

bool main_line::ensure_producer() {
    if (producer_) return true;
    auto made = parts_.make_producer(false);
    if (made) {
        producer_ = std::move(*made);
        return true;
    }
    cause_ = std::move(made.error());
    cause_->code = errc::unavailable;  // it was possible when the sink was opened
    return false;
}

void main_line::purge_waiting_requests() {
    while (!inbox_.empty()) {
        const auto number = inbox_.front();
        inbox_.pop_front();
        auto& r = parts_.requests.at(number);
        const auto rows = r.rows.size();
        for (auto i = r.next; i < rows; ++i)
            parts_.settle(
                number, static_cast<std::uint32_t>(i), row_failure{r.rows[i].row->id, unpublished()}
            );
    }
}

void main_line::purge_waiting() {
    purge_waiting_requests();
    if (waiting_ == 0) return;
    for (auto& [name, topic] : parts_.topics) {
        for (auto& gate : topic->gates) {
            for (const auto& row : gate.take_waiting()) {
                --waiting_;
                --topic->under_way;
                const auto id = parts_.requests.at(row.request).rows[row.place].row->id;
                parts_.settle(row.request, row.place, row_failure{id, unpublished()});
            }
        }
    }
}

void main_line::reset(completion<void> done) {
    resets_.push_back(std::move(done));
    if (mode_ == mode::ending) return;
    if (mode_ != mode::broken) {
        purge_waiting();
        if (handed_over_ > 0) {
            end(std::nullopt);
            return;
        }
    }
    finish_resets();
}

void main_line::finish_resets() {
    mode_ = mode::open;
    cause_.reset();
    for (auto& [name, topic] : parts_.topics) {
        if (topic->facts.trouble)
            topic->known = false;  // it may have mended: a row that comes has it looked up
    }
    for (auto& done : std::exchange(resets_, {}))
        parts_.home.post([tell = std::move(done)] { tell({}); });
}

void main_line::end(const std::optional<error>& cause) {
    if (!cause_) cause_ = cause;
    if (mode_ != mode::ending) {
        mode_ = mode::ending;
        innocents_until_ = now_ + parts_.options.settle_limit;
        purge_again_ = now_;
        gives_up_ = false;
    }
    purge_waiting();
    if (producer_) producer_->purge(RD_KAFKA_PURGE_F_QUEUE);
}

// What is in flight to partitions that are well is waited for: its fate is then known. What is in flight
// behind a refused batch will never be taken.
void main_line::empty() {
    if (handed_over_ > 0) {
        std::size_t lost = 0;
        for (std::size_t i = 0; i < failed_.size(); ++i) {
            const auto& [topic, partition] = failed_[i];
            const auto seen =
                std::find(failed_.begin(), failed_.begin() + static_cast<std::ptrdiff_t>(i), failed_[i]);
            if (seen == failed_.begin() + static_cast<std::ptrdiff_t>(i))
                lost += topic->gates[static_cast<std::size_t>(partition)].rows();
        }
        for (const auto& which : left_) {
            if (std::find(failed_.begin(), failed_.end(), which) == failed_.end())
                lost += which.first->gates[static_cast<std::size_t>(which.second)].rows();
        }
        const auto gave_up = gives_up_;
        gives_up_ = gave_up || handed_over_ <= lost || now_ >= innocents_until_;
        if (now_ < purge_again_ && gave_up == gives_up_) return;
        producer_->purge(RD_KAFKA_PURGE_F_QUEUE | (gives_up_ ? RD_KAFKA_PURGE_F_INFLIGHT : 0));
        purge_again_ = now_ + purge_every;
        if (now_ < innocents_until_ + purge_limit) return;
    }
    renew();
}

void main_line::renew() {
    for (auto& [name, topic] : parts_.topics) {
        topic->on_main.reset();
        topic->gates.clear();
    }
    failed_.clear();
    left_.clear();
    if (producer_) {
        auto client = producer_->release();
        producer_.reset();
        // While it still holds rows, their bytes must stay: then it is waited for here.
        if (handed_over_ == 0) parts_.lookup->destroy(std::move(client));
    }
    if (handed_over_ > 0) settle_unreported();
    {
        const std::lock_guard lock(parts_.counting);
        ++parts_.counts.resets;
    }
    mode_ = mode::broken;
    (void)ensure_producer();  // ahead of its first row; tried again then
    if (!resets_.empty()) finish_resets();
}

void main_line::settle_unreported() {
    const error why{
        errc::unavailable,
        retry_advice::now,
        true,
        "librdkafka did not say what became of the record; it may have been published and is sent again"};
    std::vector<row_tag> lost;
    parts_.requests.each([&](std::uint32_t number) {
        const auto& r = parts_.requests.at(number);
        for (std::uint32_t i = 0; r.where == channel::main && i < r.places.size(); ++i)
            if (r.places[i].topic != nullptr) lost.push_back({number, i});
    });
    for (const auto& tag : lost) {
        auto& r = parts_.requests.at(tag.request);
        --r.places[tag.place].topic->under_way;
        --handed_over_;
        parts_.settle(tag.request, tag.place, row_failure{r.rows[tag.place].row->id, why});
    }
}

void main_line::on_topic(topic_entry& which, const topic_facts& before) {
    // librdkafka learns of new partitions at a time of its own, and keys move: a new producer begins anew.
    const auto moved = which.on_main && before.partitions != which.facts.partitions;
    if ((moved || which.facts.trouble) && which.under_way > 0) {
        end(std::nullopt);
    } else if (moved && mode_ != mode::ending) {
        which.on_main.reset();
        which.gates.clear();
        end(std::nullopt);
    } else {
        take_back(which);
    }
}

// librdkafka would hold them until the partition is back, and with them the requests that they came in.
void main_line::take_back(topic_entry& which) {
    bool holds = false;
    for (const auto partition : which.facts.unwell) {
        const auto index = static_cast<std::size_t>(partition);
        if (partition < 0 || index >= which.gates.size() || which.gates[index].empty()) continue;
        holds = true;
        if (std::find(left_.begin(), left_.end(), std::pair(&which, partition)) == left_.end())
            left_.emplace_back(&which, partition);
    }
    if (holds && mode_ != mode::broken) end(std::nullopt);
}

bool main_line::is_silent(const topic_entry& which, mono_time now) const {
    const auto limit = parts_.options.silence;
    return std::any_of(which.gates.begin(), which.gates.end(), [&](const partition_gate& gate) {
        return gate.is_silent(now, limit);
    });
}

void main_line::serve(mono_time now) {
    now_ = now;
    poll();
    if (mode_ == mode::ending) empty();
    if (mode_ == mode::open) admit();
}

mono_time main_line::due() const noexcept {
    if (mode_ == mode::ending) return purge_again_;
    return inbox_.empty() ? mono_time::max() : now_ + blocked_look;
}

void main_line::close(mono_time now) {
    now_ = now;
    cause_ = error{
        errc::cancelled, retry_advice::never, false, "the sink was closed before the row was published"};
    end(cause_);
    const auto end_at = now + purge_every * 5;
    while (handed_over_ > 0 && parts_.home.now() < end_at && producer_) {
        producer_->purge(RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        poll();
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    for (auto& [name, topic] : parts_.topics)
        topic->on_main.reset();
    if (producer_) (void)producer_->release();
    if (handed_over_ > 0) settle_unreported();
    for (auto& done : std::exchange(resets_, {}))
        parts_.home.post([tell = std::move(done)] { tell(fail(errc::cancelled, "the sink was closed")); });
}

}  // namespace millrace::kafka
