#include "producer.hpp"

#include "kafka_conf.hpp"

#include <array>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <syslog.h>

namespace millrace::kafka {

namespace {

constexpr int leader_wait_ms = 300;

void write_log(const rd_kafka_t* client, int level, const char* facility, const char* text) {
    auto* const log = client == nullptr ? nullptr : static_cast<log_sink*>(rd_kafka_opaque(client));
    if (log == nullptr || !log->enabled(log_level::debug) || level > LOG_DEBUG) return;
    log->write(log_level::debug, "kafka.client", {{"facility", facility}, {"detail", text}});
}

void* to_opaque(row_tag tag) noexcept {
    static_assert(sizeof(void*) == sizeof(std::uint64_t));
    const auto bits = (std::uint64_t{tag.request} << 32U) | tag.place;
    return reinterpret_cast<void*>(bits);  // NOLINT(performance-no-int-to-ptr): never followed
}

/// Absent bytes are null, empty ones are not.
std::pair<void*, std::size_t> bytes_of(const std::optional<std::string_view>& bytes) noexcept {
    if (!bytes) return {nullptr, 0};
    const char* const data = bytes->data() == nullptr ? "" : bytes->data();
    return {const_cast<char*>(data), bytes->size()};  // NOLINT: librdkafka only reads what it does not own
}

headers_ptr headers_of(const outbox_row& row, const std::optional<extra_header>& extra) {
    headers_ptr headers(rd_kafka_headers_new(row.headers.size() + 1));
    const auto add = [&headers](std::string_view name, const std::optional<std::string_view>& value) {
        const auto [data, size] = bytes_of(value);
        (void)rd_kafka_header_add(  // fails only for names of 2 GB
            headers.get(),
            name.data() == nullptr ? "" : name.data(),
            static_cast<ssize_t>(name.size()),
            data,
            static_cast<ssize_t>(size)
        );
    };
    for (const auto& header : row.headers)
        add(header.name, header.value);
    if (extra) add(extra->name, extra->value);
    return headers;
}

}  // namespace

result<client_ptr> make_producer_client(conf_ptr conf, int events, log_sink& log, std::string_view servers) {
    rd_kafka_conf_set_events(conf.get(), events);
    rd_kafka_conf_set_opaque(conf.get(), &log);
    rd_kafka_conf_set_log_cb(conf.get(), write_log);
    std::array<char, 512> why{};
    auto* const made = rd_kafka_new(RD_KAFKA_PRODUCER, conf.get(), why.data(), why.size());
    if (made == nullptr)
        return fail(
            errc::invalid_config,
            fmt::format(
                "no Kafka client for {} can be made: {}", servers, fault_of_client(*conf, why.data())
            ),
            retry_advice::after_delay
        );
    (void)conf.release();  // the client has it
    return client_ptr(made, rd_kafka_destroy);
}

result<std::unique_ptr<producer>> producer::create(
    conf_ptr conf, int wake, log_sink& log, std::string_view servers
) {
    auto client =
        make_producer_client(std::move(conf), RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR, log, servers);
    if (!client) return tl::unexpected(std::move(client.error()));
    return std::unique_ptr<producer>(new producer(std::move(*client), wake));
}

producer::producer(client_ptr client, int wake)
    : client_(std::move(client)), events_(rd_kafka_queue_get_main(client_.get())) {
    const std::uint64_t one = 1;
    rd_kafka_queue_io_event_enable(events_.get(), wake, &one, sizeof one);
}

producer::~producer() = default;

client_ptr producer::release() {
    rd_kafka_queue_io_event_enable(events_.get(), -1, nullptr, 0);
    events_.reset();
    return std::move(client_);
}

topic_ptr producer::topic(const std::string& name, void* opaque) {
    topic_conf_ptr conf(rd_kafka_default_topic_conf_dup(client_.get()));
    rd_kafka_topic_conf_set_opaque(conf.get(), opaque);
    topic_ptr made(rd_kafka_topic_new(client_.get(), name.c_str(), conf.release()));
    // Newer versions find a topic's leader only half a second after its first row, unless asked for it.
    const rd_kafka_metadata_t* seen = nullptr;
    if (rd_kafka_metadata(client_.get(), 0, made.get(), &seen, leader_wait_ms) == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_metadata_destroy(seen);
    return made;
}

rd_kafka_resp_err_t producer::hand_over(
    rd_kafka_topic_t* topic,
    std::int32_t partition,
    const outbox_row& row,
    row_tag tag,
    const std::optional<extra_header>& extra
) {
    if (!row.headers.empty() || row.timestamp || extra)
        return hand_over_in_full(topic, partition, row, to_opaque(tag), extra);
    const auto [value, value_size] = bytes_of(row.value);
    const auto [key, key_size] = bytes_of(row.key);
    const auto failed =
        rd_kafka_produce(topic, partition, 0, value, value_size, key, key_size, to_opaque(tag));
    return failed == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_last_error();
}

rd_kafka_resp_err_t producer::hand_over_in_full(
    rd_kafka_topic_t* topic,
    std::int32_t partition,
    const outbox_row& row,
    void* tag,
    const std::optional<extra_header>& extra
) {
    auto headers = headers_of(row, extra);
    std::array<rd_kafka_vu_t, 7> fields{};
    fields[0].vtype = RD_KAFKA_VTYPE_RKT;
    fields[0].u.rkt = topic;
    fields[1].vtype = RD_KAFKA_VTYPE_PARTITION;
    fields[1].u.i32 = partition;
    fields[2].vtype = RD_KAFKA_VTYPE_VALUE;
    std::tie(fields[2].u.mem.ptr, fields[2].u.mem.size) = bytes_of(row.value);
    fields[3].vtype = RD_KAFKA_VTYPE_KEY;
    std::tie(fields[3].u.mem.ptr, fields[3].u.mem.size) = bytes_of(row.key);
    fields[4].vtype = RD_KAFKA_VTYPE_OPAQUE;
    fields[4].u.ptr = tag;
    fields[5].vtype = RD_KAFKA_VTYPE_HEADERS;
    fields[5].u.headers = headers.get();
    std::size_t count = 6;
    if (row.timestamp) {
        fields[6].vtype = RD_KAFKA_VTYPE_TIMESTAMP;
        fields[6].u.i64 = row.timestamp->time_since_epoch().count();
        count = 7;
    }
    auto* const failed = rd_kafka_produceva(client_.get(), fields.data(), count);
    if (failed == nullptr) {
        (void)headers.release();  // they went with the row
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    const auto code = rd_kafka_error_code(failed);
    rd_kafka_error_destroy(failed);
    return code;
}

event_ptr producer::next_event() {
    return event_ptr(rd_kafka_queue_poll(events_.get(), 0));
}

void producer::purge(int flags) {
    (void)rd_kafka_purge(client_.get(), flags | RD_KAFKA_PURGE_F_NON_BLOCKING);  // fails only for consumers
}

rd_kafka_resp_err_t producer::fatal() const {
    return rd_kafka_fatal_error(client_.get(), nullptr, 0);
}

row_tag producer::tag_of(const rd_kafka_message_t& message) noexcept {
    const auto bits = reinterpret_cast<std::uint64_t>(message._private);
    return {static_cast<std::uint32_t>(bits >> 32U), static_cast<std::uint32_t>(bits)};
}

}  // namespace millrace::kafka
