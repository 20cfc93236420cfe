#include "main_line.hpp"

#include "kafka_error.hpp"
#include "record_size.hpp"

#include <array>

namespace millrace::kafka {

namespace {

bool is_purge(rd_kafka_resp_err_t code) {
    return code == RD_KAFKA_RESP_ERR__PURGE_QUEUE || code == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT ||
           code == RD_KAFKA_RESP_ERR__FATAL;
}

topic_entry& topic_of(const rd_kafka_message_t& message) {
    return *static_cast<topic_entry*>(rd_kafka_topic_opaque(message.rkt));
}

}  // namespace

void main_line::publish(std::unique_ptr<request> what) {
    what->places.resize(what->rows.size());
    ++parts_.seed;
    const auto number = parts_.requests.add(std::move(what));
    inbox_.push_back(number);
    if (mode_ != mode::open) {
        purge_waiting();
    } else {
        admit();
    }
}

error main_line::unpublished() const {
    return cause_ ? *cause_ : purged_error();
}

void main_line::admit() {
    while (mode_ == mode::open && !inbox_.empty()) {
        const auto number = inbox_.front();
        auto& r = parts_.requests.at(number);
        const auto rows = r.rows.size();
        auto last = step::placed;
        // A row that is refused may complete the request, which is gone then.
        for (auto i = r.next; i < rows && last == step::placed && mode_ == mode::open; ++i)
            last = place(number, r);
        if (last == step::blocked) return;
        if (last == step::refused) {
            if (mode_ == mode::open) mode_ = mode::refused;
            purge_waiting_requests();
        }
    }
}

main_line::step main_line::place(std::uint32_t number, request& r) {
    const auto i = static_cast<std::uint32_t>(r.next);
    const auto& row = *r.rows[i].row;
    auto& topic = parts_.topic(row.topic);
    topic.used = now_;
    if (!topic.known) {
        parts_.ask(topic, now_);
        return step::blocked;
    }
    if (++r.next == r.rows.size()) inbox_.pop_front();
    auto failure = refusal(r, topic);
    std::int32_t partition = 0;
    if (!failure) {
        partition = place_of(row, topic.facts, parts_.by, parts_.seed);
        if (topic.facts.is_unwell(partition))
            failure = row_failure{row.id, unwell_error(topic.name, partition)};
    }
    if (!failure && !ensure_producer()) failure = row_failure{row.id, unpublished()};
    if (failure) {
        parts_.settle(number, i, std::move(failure));
        return step::refused;
    }
    if (!topic.on_main) {
        topic.on_main = producer_->topic(topic.name, &topic);
        topic.gates = std::vector<partition_gate>(static_cast<std::size_t>(topic.facts.partitions));
    }
    const auto bytes = static_cast<std::uint32_t>(record_bytes(row, parts_.extra_bytes(r)) + record_slack);
    r.places[i] = {&topic, partition, bytes, {}};
    ++topic.under_way;
    auto& gate = topic.gates[static_cast<std::size_t>(partition)];
    if (!gate.lets_pass(now_, bytes, limits_of(topic))) {
        gate.wait({number, i, bytes});
        ++waiting_;
        return step::placed;
    }
    const auto code = hand_over(number, i);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return step::placed;
    fail_to_hand_over(number, i, code);
    return step::refused;
}

// What is known beforehand. Suspicion is no verdict, but a row that goes on would end the producer.
std::optional<row_failure> main_line::refusal(const request& r, const topic_entry& topic) const {
    const auto& row = *r.rows[r.next - 1].row;
    if (!row.malformed.empty())
        return row_failure{
            row.id, {errc::refused_record, retry_advice::never, false, std::string(row.malformed)}};
    if (const auto& facts = topic.facts; facts.trouble || facts.denied)
        return row_failure{row.id, facts.trouble ? *facts.trouble : *facts.denied};
    if (row.partition && (*row.partition < 0 || *row.partition >= topic.facts.partitions))
        return row_failure{
            row.id,
            record_error(
                RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, RD_KAFKA_MSG_STATUS_NOT_PERSISTED, topic.name
            )};
    const auto extra = parts_.extra_bytes(r);
    const auto bytes = batch_header_bytes + record_bytes(row, extra);
    if (parts_.limit_is_users && bytes > parts_.main_bytes_max)
        return row_failure{row.id, too_large_for_client(topic.name, bytes, parts_.main_bytes_max)};
    if (auto why = suspicion(topic.facts, row, parts_.main_bytes_max, extra))
        return row_failure{row.id, std::move(*why), true};
    return std::nullopt;
}

partition_gate::limits main_line::limits_of(const topic_entry& topic) const {
    const auto limit = topic.facts.batch_bytes_max;
    const auto small = limit < parts_.batch_bytes_max + batch_header_bytes;
    return {
        parts_.options.idle_partition,
        small ? std::max(limit, batch_header_bytes + 1) - batch_header_bytes : 0};
}

rd_kafka_resp_err_t main_line::hand_over(std::uint32_t number, std::uint32_t place) {
    auto& r = parts_.requests.at(number);
    auto& where = r.places[place];
    const auto code = producer_->hand_over(
        where.topic->on_main.get(), where.partition, *r.rows[place].row, {number, place}, r.extra()
    );
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
    where.handed_over = now_;
    auto& gate = where.topic->gates[static_cast<std::size_t>(where.partition)];
    if (gate.rows() == 0) gate.moved(now_);
    gate.sent(where.bytes);
    ++handed_over_;
    return code;
}

void main_line::fail_to_hand_over(std::uint32_t number, std::uint32_t place, rd_kafka_resp_err_t code) {
    auto& r = parts_.requests.at(number);
    auto& topic = *r.places[place].topic;
    --topic.under_way;
    auto why =
        is_purge(code) ? unpublished() : record_error(code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED, topic.name);
    if (is_about_topic(code)) {
        topic.facts.denied = why;
        parts_.publish_facts(topic);
    }
    // The client counts otherwise than the topic: no verdict.
    const row_failure failure{r.rows[place].row->id, std::move(why), is_about_size(code)};
    parts_.settle(number, place, failure);
    // The producer knows the topic as absent or denied until it looks again in minutes: another one does at
    // once.
    if (is_purge(code) || is_about_topic(code)) end(std::nullopt);
}

void main_line::release(topic_entry& topic, std::int32_t partition) {
    if (mode_ != mode::open && mode_ != mode::refused) return;
    const auto limits = limits_of(topic);
    auto& gate = topic.gates[static_cast<std::size_t>(partition)];
    while (const auto row = gate.next(now_, limits)) {
        --waiting_;
        const auto code = hand_over(row->request, row->place);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
        fail_to_hand_over(row->request, row->place, code);
        end(std::nullopt);  // others of its lane may be waiting behind it
        return;
    }
}

void main_line::poll() {
    while (producer_) {
        const auto event = producer_->next_event();
        if (!event) return;
        if (rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_DR) {
            on_reports(event.get());
            continue;
        }
        const auto code = rd_kafka_event_error(event.get());
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
        const auto fatal = producer_->fatal();
        if (fatal == RD_KAFKA_RESP_ERR_NO_ERROR) {
            parts_.on_error(code, rd_kafka_event_error_string(event.get()));
        } else if (fatal == RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE) {
            end(std::nullopt);  // the report of the refused rows says why
        } else {
            end(client_error(fatal, rd_kafka_event_error_string(event.get()), parts_.cluster.servers));
        }
    }
}

void main_line::on_reports(rd_kafka_event_t* event) {
    std::array<const rd_kafka_message_t*, 512> some{};
    const auto count = rd_kafka_event_message_count(event);
    topic_entry* topic = nullptr;
    std::int32_t partition = 0;
    std::uint64_t acknowledged = 0;
    bool first = true;
    while (const auto n = rd_kafka_event_message_array(event, some.data(), some.size())) {
        if (std::exchange(first, false)) learn(some[0]->err, topic_of(*some[0]), {some.data(), n}, count);
        for (std::size_t i = 0; i < n; ++i) {
            const auto& message = *some[i];
            const auto tag = producer::tag_of(message);
            const auto where = parts_.requests.at(tag.request).places[tag.place];
            if (topic != nullptr && (where.topic != topic || where.partition != partition))
                release(*topic, partition);
            topic = where.topic;
            partition = where.partition;
            acknowledged += message.err == RD_KAFKA_RESP_ERR_NO_ERROR ? 1 : 0;
            report(message, count > 1);
        }
    }
    if (topic != nullptr) release(*topic, partition);
    if (acknowledged == 0) return;
    parts_.on_answer();
    const std::lock_guard lock(parts_.counting);
    parts_.counts.acknowledged += acknowledged;
}

void main_line::report(const rd_kafka_message_t& message, bool shared) {
    const auto tag = producer::tag_of(message);
    auto& r = parts_.requests.at(tag.request);
    const auto where = r.places[tag.place];
    const auto good = message.err == RD_KAFKA_RESP_ERR_NO_ERROR;
    auto& gate = where.topic->gates[static_cast<std::size_t>(where.partition)];
    gate.settled(where.bytes, good ? std::optional(where.handed_over) : std::nullopt);
    gate.moved(now_);
    --handed_over_;
    --where.topic->under_way;
    if (good) {
        parts_.settle(tag.request, tag.place, std::nullopt);
        return;
    }
    const auto failed = std::pair(where.topic, where.partition);
    if (is_purge(message.err)) {
        // Behind a refused batch of its partition the broker takes nothing, whatever is still in flight.
        const auto behind = std::ranges::find(failed_, failed) != failed_.end();
        auto why = behind ? purged_error()
                          : record_error(message.err, rd_kafka_message_status(&message), where.topic->name);
        if (cause_ && !why.in_doubt) why = *cause_;
        parts_.settle(tag.request, tag.place, row_failure{r.rows[tag.place].row->id, std::move(why)});
        return;
    }
    auto why = record_error(message.err, rd_kafka_message_status(&message), *r.rows[tag.place].row);
    const auto of_topic = why.code == errc::unavailable;  // it came back for this partition
    parts_.settle(
        tag.request, tag.place, row_failure{r.rows[tag.place].row->id, std::move(why), shared, of_topic}
    );
}

// Before the rows are settled, so that the host knows more when it hears of them.
void main_line::learn(
    rd_kafka_resp_err_t code,
    topic_entry& topic,
    std::span<const rd_kafka_message_t* const> some,
    std::size_t count
) {
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || is_purge(code)) return;
    {
        const std::lock_guard lock(parts_.counting);
        ++parts_.counts.refused;
    }
    const auto before = topic.facts;
    if (is_about_size(code)) {
        std::size_t bytes = 0;
        for (const auto* const message : some) {
            const auto tag = producer::tag_of(*message);
            bytes += parts_.requests.at(tag.request).places[tag.place].bytes - record_slack;
        }
        topic.facts.refused(batch_header_bytes + bytes * count / some.size(), count == 1);
    }
    if (is_about_topic(code))
        topic.facts.denied = record_error(code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED, topic.name);
    if (topic.facts != before) parts_.publish_facts(topic);
    topic.ask_at = now_;
    parts_.ask(topic, now_);
    const auto tag = producer::tag_of(*some.front());
    failed_.emplace_back(&topic, parts_.requests.at(tag.request).places[tag.place].partition);
    end(std::nullopt);
}

}  // namespace millrace::kafka
