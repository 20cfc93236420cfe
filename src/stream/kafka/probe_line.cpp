#include "probe_line.hpp"

#include "kafka_error.hpp"
#include "record_size.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace millrace::kafka {

namespace {

/// What was seen of the topic lets the row be judged. Partitions are added, so a row that names one beyond is
/// judged by a fresh look.
bool is_known_to(const topic_entry& topic, const outbox_row& row) {
    return topic.known && !topic.facts.trouble && !topic.facts.denied &&
           !(row.partition && *row.partition >= topic.facts.partitions);
}

}  // namespace

void probe_line::publish(std::unique_ptr<request> what, mono_time now) {
    now_ = now;
    what->places.resize(what->rows.size());
    ++parts_.seed;
    const auto rows = static_cast<std::uint32_t>(what->rows.size());
    {
        const std::lock_guard lock(parts_.counting);
        parts_.counts.probed += rows;
    }
    const auto number = parts_.requests.add(std::move(what));
    for (std::uint32_t i = 0; i < rows; ++i) {
        const auto& row = *parts_.requests.at(number).rows[i].row;
        auto& topic = parts_.topic(row.topic);
        topic.used = now;
        if (is_known_to(topic, row)) {
            send({number, i}, topic, now);
        } else {
            looking_.push_back({number, i});
            topic.ask_at = now;
            parts_.ask(topic, now);
        }
    }
}

void probe_line::on_topic(topic_entry& which, mono_time now) {
    if (!which.known) return;
    for (const auto& row : std::exchange(looking_, {})) {
        const auto& r = parts_.requests.at(row.request);
        if (r.rows[row.place].row->topic != which.name) {
            looking_.push_back(row);
        } else {
            send(row, which, now);
        }
    }
    const auto held = std::any_of(handed_over_.begin(), handed_over_.end(), [&](const probed_row& row) {
        const auto& place = parts_.requests.at(row.request).places[row.place];
        return place.topic == &which && which.facts.is_unwell(place.partition);
    });
    if (!held || !producer_) return;
    // A purge takes all: the others are sent again.
    worn_ = true;
    producer_->purge(RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

bool probe_line::is_silent(const topic_entry& which, mono_time now) const {
    return std::any_of(handed_over_.begin(), handed_over_.end(), [&](const probed_row& row) {
        const auto& place = parts_.requests.at(row.request).places[row.place];
        return place.topic == &which && now - place.handed_over > parts_.options.silence;
    });
}

void probe_line::send(probed_row which, topic_entry& topic, mono_time now) {
    now_ = now;
    auto& r = parts_.requests.at(which.request);
    const auto& row = *r.rows[which.place].row;
    const auto settle = [&](error why) {
        parts_.settle(which.request, which.place, row_failure{row.id, std::move(why)});
    };
    if (topic.facts.trouble) return settle(*topic.facts.trouble);
    if (!row.malformed.empty())
        return settle({errc::refused_record, retry_advice::never, false, std::string(row.malformed)});
    const auto refused = [&](rd_kafka_resp_err_t code) {
        refuse(which, topic, code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED);
    };
    if (row.partition && (*row.partition < 0 || *row.partition >= topic.facts.partitions))
        return refused(RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION);
    const auto bytes = batch_header_bytes + record_bytes(row, parts_.extra_bytes(r));
    if (bytes > parts_.probe_bytes_max)
        return settle(too_large_for_client(topic.name, bytes, parts_.probe_bytes_max));
    if (!producer_) {
        auto made = parts_.make_producer(true);
        if (!made) return settle(std::move(made.error()));
        producer_ = std::move(*made);
    }
    // Made anew where partitions came: librdkafka would learn of them in minutes.
    if (!topic.on_probe || topic.partitions_on_probe != topic.facts.partitions) {
        topic.on_probe = producer_->topic(topic.name, &topic);
        topic.partitions_on_probe = topic.facts.partitions;
    }
    const auto partition = place_of(row, topic.facts, parts_.by, parts_.seed);
    if (topic.facts.is_unwell(partition)) return settle(unwell_error(topic.name, partition));
    r.places[which.place] = {&topic, partition, static_cast<std::uint32_t>(bytes), now};
    const auto code =
        producer_->hand_over(topic.on_probe.get(), partition, row, {which.request, which.place}, r.extra());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return refused(code);
    handed_over_.push_back(which);
}

void probe_line::refuse(
    probed_row which, topic_entry& topic, rd_kafka_resp_err_t code, rd_kafka_msg_status_t status
) {
    const auto& r = parts_.requests.at(which.request);
    auto why = record_error(code, status, *r.rows[which.place].row);
    const auto before = topic.facts;
    if (is_about_size(code)) topic.facts.refused(r.places[which.place].bytes, true);
    if (is_about_topic(code)) {
        topic.facts.denied = why;
        worn_ = true;
    }
    teach(topic, before);
    // Its limits may have changed since they were read.
    topic.ask_at = now_;
    if (why.code == errc::refused_record) parts_.ask(topic, now_);
    {
        const std::lock_guard lock(parts_.counting);
        ++parts_.counts.refused;
    }
    parts_.settle(which.request, which.place, row_failure{r.rows[which.place].row->id, std::move(why)});
}

void probe_line::teach(topic_entry& topic, const topic_facts& before) {
    if (topic.facts != before) parts_.publish_facts(topic);
}

void probe_line::report(const rd_kafka_message_t& message) {
    const auto tag = producer::tag_of(message);
    const probed_row which{tag.request, tag.place};
    std::erase_if(handed_over_, [&](const probed_row& r) {
        return r.request == which.request && r.place == which.place;
    });
    const auto where = parts_.requests.at(tag.request).places[tag.place];
    if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        refuse(which, *where.topic, message.err, rd_kafka_message_status(&message));
        return;
    }
    const auto before = where.topic->facts;
    where.topic->facts.denied.reset();
    where.topic->facts.accepted(where.bytes);
    teach(*where.topic, before);
    parts_.on_answer();
    {
        const std::lock_guard lock(parts_.counting);
        ++parts_.counts.acknowledged;
    }
    parts_.settle(tag.request, tag.place, std::nullopt);
}

void probe_line::serve(mono_time now) {
    now_ = now;
    for (const auto& row : looking_)
        parts_.ask(parts_.topic(parts_.requests.at(row.request).rows[row.place].row->topic), now);
    while (producer_) {
        const auto event = producer_->next_event();
        if (!event) break;
        if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_DR) {
            std::array<const rd_kafka_message_t*, 64> some{};
            while (const auto n = rd_kafka_event_message_array(event.get(), some.data(), some.size()))
                for (std::size_t i = 0; i < n; ++i)
                    report(*some[i]);
        } else if (const auto code = rd_kafka_event_error(event.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
            parts_.on_error(code, rd_kafka_event_error_string(event.get()));
        }
    }
    if (producer_ && !purges_.empty()) producer_->purge(RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    finish_purges();
    if (!producer_) return;
    // Its end is no verdict on the rows that it held; the next one begins anew.
    if (producer_->fatal() != RD_KAFKA_RESP_ERR_NO_ERROR) {
        worn_ = true;
        producer_->purge(RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    }
    if (worn_ && handed_over_.empty()) retire();
}

void probe_line::purge(completion<void> done) {
    for (const auto& row : std::exchange(looking_, {})) {
        const auto id = parts_.requests.at(row.request).rows[row.place].row->id;
        parts_.settle(row.request, row.place, row_failure{id, purged_error()});
    }
    constexpr auto limit = std::chrono::seconds{5};
    if (purges_.empty()) purge_limit_ = parts_.home.now() + limit;
    purges_.push_back(std::move(done));
    if (producer_) {
        worn_ = true;
        producer_->purge(RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    }
    finish_purges();
}

void probe_line::finish_purges() {
    if (purges_.empty() || (!handed_over_.empty() && now_ < purge_limit_)) return;
    if (!handed_over_.empty() && producer_) {
        // It does not report them: their bytes must stay until it is gone.
        for (auto& [name, topic] : parts_.topics)
            topic->on_probe.reset();
        (void)producer_->release();
        producer_.reset();
        worn_ = false;
    }
    for (const auto& row : std::exchange(handed_over_, {})) {
        const auto id = parts_.requests.at(row.request).rows[row.place].row->id;
        const error why{
            errc::unavailable, retry_advice::now, true, "librdkafka did not say what became of the record"};
        parts_.settle(row.request, row.place, row_failure{id, why});
    }
    if (producer_) retire();
    for (auto& done : std::exchange(purges_, {}))
        parts_.home.post([tell = std::move(done)] { tell({}); });
}

void probe_line::retire() {
    for (auto& [name, topic] : parts_.topics)
        topic->on_probe.reset();
    parts_.lookup->destroy(producer_->release());
    producer_.reset();
    worn_ = false;
}

void probe_line::close() {
    const error cancelled{
        errc::cancelled, retry_advice::never, false, "the sink was closed before the row was published"};
    for (auto& [name, topic] : parts_.topics)
        topic->on_probe.reset();
    if (producer_) {
        producer_->purge(RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        (void)producer_->release();
    }
    for (auto& done : std::exchange(purges_, {}))
        parts_.home.post([tell = std::move(done)] { tell(fail(errc::cancelled, "the sink was closed")); });
    for (const auto* rows : {&looking_, &handed_over_}) {
        for (const auto& row : *rows) {
            auto why = cancelled;
            why.in_doubt = rows == &handed_over_;
            const auto id = parts_.requests.at(row.request).rows[row.place].row->id;
            parts_.settle(row.request, row.place, row_failure{id, std::move(why)});
        }
    }
}

}  // namespace millrace::kafka
