#include "kafka_error.hpp"

#include <string>

#include <fmt/core.h>

namespace millrace::kafka {

namespace {

struct meaning {
    errc code;
    retry_advice retry;
    std::string_view advice;
};

constexpr meaning unavailable{
    errc::unavailable,
    retry_advice::after_delay,
    "it is tried again; see whether the brokers are up and reachable"};

meaning meaning_of(rd_kafka_resp_err_t code) {
    switch (code) {
        case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
        case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
        case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
            return {
                errc::refused_record,
                retry_advice::never,
                "raise the topic's max.message.bytes (and message.max.bytes of the Kafka URL), or write "
                "smaller events"};
        case RD_KAFKA_RESP_ERR_INVALID_RECORD:
            return {
                errc::refused_record,
                retry_advice::never,
                "a compacted topic takes only records with a key; see the topic's cleanup.policy"};
        case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
            return {
                errc::refused_record,
                retry_advice::never,
                "the event's timestamp is further from now than the topic's message.timestamp limits allow"};
        case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
        case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
            return {errc::refused_record, retry_advice::never, "change the topic's settings or the event"};
        case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
            return {
                errc::refused_record,
                retry_advice::after_delay,
                "the event names a partition that the topic does not have; add partitions or correct the "
                "event"};
        case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
            return {errc::refused_topic, retry_advice::after_delay, "create the topic"};
        case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
            return {
                errc::refused_topic,
                retry_advice::after_delay,
                "the topic has no leader yet; it is tried again"};
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
            return {
                errc::refused_topic,
                retry_advice::after_delay,
                "grant the relay's user Write and Describe on the topic"};
        case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
            return {
                errc::refused_topic, retry_advice::never, "no topic can have this name; correct the event"};
        case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            return {
                errc::permission_denied,
                retry_advice::after_delay,
                "grant the relay's user IdempotentWrite on the cluster"};
        case RD_KAFKA_RESP_ERR__AUTHENTICATION:
        case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
        case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
        case RD_KAFKA_RESP_ERR__SSL:
            return {
                errc::permission_denied,
                retry_advice::after_delay,
                "see the security.protocol, sasl.* and ssl.* properties of the Kafka URL"};
        case RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED:
        case RD_KAFKA_RESP_ERR__QUEUE_FULL:
            return {errc::throttled, retry_advice::after_delay, "it is tried again"};
        default:
            return unavailable;
    }
}

}  // namespace

const error& recent_cause::behind(error why, mono_time now) {
    const auto telling = why.code == errc::permission_denied;
    if (telling) until_ = now + std::chrono::minutes{1};
    if (telling || now >= until_) shown_ = std::move(why);
    return shown_;
}

error purged_error() {
    return {
        errc::purged,
        retry_advice::now,
        false,
        "not tried: an earlier row of this channel was refused; send it again after a reset"};
}

error too_large_for_client(std::string_view topic, std::size_t bytes, std::size_t limit) {
    return {
        errc::refused_record,
        retry_advice::never,
        false,
        fmt::format(
            "topic \"{}\": a record of {} bytes is above the client's limit of {} bytes; raise "
            "message.max.bytes "
            "of the Kafka URL and the topic's max.message.bytes, or write smaller events",
            topic,
            bytes,
            limit
        )};
}

error record_error(rd_kafka_resp_err_t code, rd_kafka_msg_status_t status, std::string_view topic) {
    const bool in_doubt = status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED;
    const auto is_purge = code == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
                          code == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT || code == RD_KAFKA_RESP_ERR__FATAL;
    if (is_purge && !in_doubt) return purged_error();
    if (is_purge)
        return {
            errc::unavailable,
            retry_advice::now,
            true,
            fmt::format(
                "topic \"{}\": the record was sent and given up before a broker acknowledged it; it may have "
                "been published and is sent again",
                topic
            )};
    const auto is = meaning_of(code);
    const auto verdict = is.code == errc::refused_record || is.code == errc::refused_topic;
    return {
        is.code,
        is.retry,
        in_doubt && !verdict,
        fmt::format("topic \"{}\": {}; {}", topic, rd_kafka_err2str(code), is.advice)};
}

error record_error(rd_kafka_resp_err_t code, rd_kafka_msg_status_t status, const outbox_row& row) {
    if (code != RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP || row.timestamp) {
        return record_error(code, status, row.topic);
    }
    return {
        errc::unavailable,
        retry_advice::after_delay,
        false,
        fmt::format(
            "topic \"{}\": {}; the event has no timestamp of its own, so it bears the time of this machine: "
            "the clock of this machine or of the broker is wrong, or the topic's message.timestamp limits "
            "allow nothing; correct that, the event is tried again",
            row.topic,
            rd_kafka_err2str(code)
        )};
}

error client_error(rd_kafka_resp_err_t code, std::string_view reason, std::string_view servers) {
    const auto is = meaning_of(code);
    return {
        is.code,
        is.retry,
        false,
        fmt::format(
            "Kafka at {}: {}; {}", servers, reason.empty() ? rd_kafka_err2str(code) : reason, is.advice
        )};
}

bool is_about_size(rd_kafka_resp_err_t code) noexcept {
    return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE || code == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE ||
           code == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE;
}

bool is_about_topic(rd_kafka_resp_err_t code) noexcept {
    return meaning_of(code).code == errc::refused_topic;
}

}  // namespace millrace::kafka
