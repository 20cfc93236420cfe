#include "support/kafka_topics.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <thread>

#include <librdkafka/rdkafka.h>

namespace millrace::support {

namespace {

constexpr int patience_ms = 120'000;

template <auto destroy>
struct destroyer {
    template <class T>
    void operator()(T* object) const noexcept {
        destroy(object);
    }
};
using queue_ptr = std::unique_ptr<rd_kafka_queue_t, destroyer<rd_kafka_queue_destroy>>;
using event_ptr = std::unique_ptr<rd_kafka_event_t, destroyer<rd_kafka_event_destroy>>;
using options_ptr = std::unique_ptr<rd_kafka_AdminOptions_t, destroyer<rd_kafka_AdminOptions_destroy>>;
using list_ptr =
    std::unique_ptr<rd_kafka_topic_partition_list_t, destroyer<rd_kafka_topic_partition_list_destroy>>;
using message_ptr = std::unique_ptr<rd_kafka_message_t, destroyer<rd_kafka_message_destroy>>;
using resource_ptr = std::unique_ptr<rd_kafka_ConfigResource_t, destroyer<rd_kafka_ConfigResource_destroy>>;
using new_topic_ptr = std::unique_ptr<rd_kafka_NewTopic_t, destroyer<rd_kafka_NewTopic_destroy>>;
using acl_ptr = std::unique_ptr<rd_kafka_AclBinding_t, destroyer<rd_kafka_AclBinding_destroy>>;

using text_buffer = std::array<char, 512>;

[[noreturn]] void fail(const std::string& what, const char* why) {
    throw std::runtime_error("Kafka: " + what + ": " + (why == nullptr ? "no reason given" : why));
}

void check(rd_kafka_resp_err_t error, const std::string& what) {
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail(what, ::rd_kafka_err2str(error));
}

void check(const rd_kafka_error_t* error, const std::string& what) {
    if (error != nullptr) fail(what, ::rd_kafka_error_string(error));
}

/// The opaque of a message is the text that takes the first failure of its call.
void note_failure(rd_kafka_t*, const rd_kafka_message_t* message, void*) {
    auto& first = *static_cast<std::string*>(message->_private);
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && first.empty())
        first = ::rd_kafka_err2name(message->err);
}

kafka_handle make_handle(
    rd_kafka_type_t type,
    const std::string& bootstrap,
    const kafka_settings& defaults,
    const kafka_settings& client
) {
    auto* const configuration = ::rd_kafka_conf_new();
    text_buffer text{};
    auto set = [&](const std::string& name, const std::string& value) {
        if (::rd_kafka_conf_set(configuration, name.c_str(), value.c_str(), text.data(), text.size()) !=
            RD_KAFKA_CONF_OK)
            fail("setting " + name, text.data());
    };
    set("bootstrap.servers", bootstrap);
    set("log_level", "2");
    for (const auto& settings : {defaults, client})
        for (const auto& [name, value] : settings)
            set(name, value);
    if (type == RD_KAFKA_PRODUCER) ::rd_kafka_conf_set_dr_msg_cb(configuration, note_failure);
    kafka_handle handle{::rd_kafka_new(type, configuration, text.data(), text.size())};
    if (!handle) fail("no client", text.data());
    return handle;
}

/// Sends an admin request by `request(options, queue)` and returns its result, an error of the whole thrown.
template <class Request>
event_ptr ask(rd_kafka_t* handle, const std::string& what, Request request) {
    const queue_ptr queue{::rd_kafka_queue_new(handle)};
    const options_ptr options{::rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_ANY)};
    text_buffer text{};
    check(
        ::rd_kafka_AdminOptions_set_request_timeout(options.get(), patience_ms, text.data(), text.size()),
        what
    );
    request(options.get(), queue.get());
    event_ptr event{::rd_kafka_queue_poll(queue.get(), 2 * patience_ms)};
    if (!event) fail(what, "no answer");
    if (::rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail(what, ::rd_kafka_event_error_string(event.get()));
    return event;
}

void check_topics(const rd_kafka_topic_result_t* const* results, std::size_t count, const std::string& what) {
    for (std::size_t i = 0; i < count; ++i) {
        if (::rd_kafka_topic_result_error(results[i]) != RD_KAFKA_RESP_ERR_NO_ERROR)
            fail(what, ::rd_kafka_topic_result_error_string(results[i]));
    }
}

std::optional<std::string> bytes(const void* data, std::size_t size) {
    if (data == nullptr) return std::nullopt;
    return std::string{static_cast<const char*>(data), size};
}

decltype(rd_kafka_vu_t{}.u.mem) part_of(const std::optional<std::string>& bytes) {
    if (!bytes) return {nullptr, 0};
    return {const_cast<char*>(bytes->data()), bytes->size()};  // the library only reads it
}

topic_record to_record(const rd_kafka_message_t& message) {
    rd_kafka_timestamp_type_t type{};
    topic_record record{
        .partition = message.partition,
        .offset = message.offset,
        .timestamp = ::rd_kafka_message_timestamp(&message, &type),
        .key = bytes(message.key, message.key_len),
        .value = bytes(message.payload, message.len)};
    rd_kafka_headers_t* headers = nullptr;
    if (::rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return record;
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0; ::rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; ++i)
        record.headers.emplace_back(name, bytes(value, size));
    return record;
}

int partitions_of(rd_kafka_t* handle, const std::string& topic) {
    const rd_kafka_metadata_t* metadata = nullptr;
    auto* const name = ::rd_kafka_topic_new(handle, topic.c_str(), nullptr);
    const auto error = ::rd_kafka_metadata(handle, 0, name, &metadata, patience_ms);
    ::rd_kafka_topic_destroy(name);
    check(error, "metadata of " + topic);
    const auto topic_error =
        metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
    const int count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
    ::rd_kafka_metadata_destroy(metadata);
    check(topic_error, "topic " + topic);
    return count;
}

/// The broker answers before the new topic is known everywhere.
void await_partitions(rd_kafka_t* handle, const std::string& topic, int total) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds{patience_ms};
    while (std::chrono::steady_clock::now() < deadline) {
        try {
            if (partitions_of(handle, topic) == total) return;
        } catch (const std::runtime_error&) {
            // It is not known yet; the deadline reports the rest.
        }
    }
    fail("topic " + topic, "its partitions are not there in time");
}

rd_kafka_AclOperation_t code_of(kafka_admin::operation what) {
    switch (what) {
        case kafka_admin::operation::read:
            return RD_KAFKA_ACL_OPERATION_READ;
        case kafka_admin::operation::write:
            return RD_KAFKA_ACL_OPERATION_WRITE;
        case kafka_admin::operation::describe:
            return RD_KAFKA_ACL_OPERATION_DESCRIBE;
        case kafka_admin::operation::describe_configs:
            return RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS;
    }
    return RD_KAFKA_ACL_OPERATION_UNKNOWN;
}

}  // namespace

void detail::kafka_closer::operator()(rd_kafka_s* handle) const noexcept {
    ::rd_kafka_destroy(handle);
}

std::optional<std::string> topic_record::header(const std::string& name) const {
    const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& header) {
        return header.first == name;
    });
    return found == headers.end() ? std::nullopt : found->second;
}

kafka_admin::kafka_admin(const std::string& bootstrap, const kafka_settings& client)
    : handle_(make_handle(RD_KAFKA_PRODUCER, bootstrap, {}, client)) {}

void kafka_admin::create_topic(const std::string& name, int partitions, const kafka_settings& settings) {
    text_buffer text{};
    const new_topic_ptr topic{::rd_kafka_NewTopic_new(name.c_str(), partitions, 1, text.data(), text.size())};
    if (!topic) fail("new topic " + name, text.data());
    for (const auto& [setting, value] : settings)
        check(::rd_kafka_NewTopic_set_config(topic.get(), setting.c_str(), value.c_str()), setting);
    auto* request = topic.get();
    const auto event = ask(handle_.get(), "creating " + name, [&](auto* options, auto* queue) {
        ::rd_kafka_CreateTopics(handle_.get(), &request, 1, options, queue);
    });
    std::size_t count = 0;
    const auto* result = ::rd_kafka_event_CreateTopics_result(event.get());
    const auto* const* topics = ::rd_kafka_CreateTopics_result_topics(result, &count);
    check_topics(topics, count, "creating " + name);
    await_partitions(handle_.get(), name, partitions);
}

void kafka_admin::delete_topic(const std::string& name) {
    const std::unique_ptr<rd_kafka_DeleteTopic_t, destroyer<rd_kafka_DeleteTopic_destroy>> topic{
        ::rd_kafka_DeleteTopic_new(name.c_str())};
    auto* request = topic.get();
    const auto event = ask(handle_.get(), "deleting " + name, [&](auto* options, auto* queue) {
        ::rd_kafka_DeleteTopics(handle_.get(), &request, 1, options, queue);
    });
    std::size_t count = 0;
    const auto* result = ::rd_kafka_event_DeleteTopics_result(event.get());
    const auto* const* topics = ::rd_kafka_DeleteTopics_result_topics(result, &count);
    check_topics(topics, count, "deleting " + name);
}

void kafka_admin::add_partitions(const std::string& name, int total) {
    text_buffer text{};
    const std::unique_ptr<rd_kafka_NewPartitions_t, destroyer<rd_kafka_NewPartitions_destroy>> partitions{
        ::rd_kafka_NewPartitions_new(
            name.c_str(), static_cast<std::size_t>(total), text.data(), text.size()
        )};
    if (!partitions) fail("partitions of " + name, text.data());
    auto* request = partitions.get();
    const auto event = ask(handle_.get(), "partitions of " + name, [&](auto* options, auto* queue) {
        ::rd_kafka_CreatePartitions(handle_.get(), &request, 1, options, queue);
    });
    std::size_t count = 0;
    const auto* result = ::rd_kafka_event_CreatePartitions_result(event.get());
    const auto* const* topics = ::rd_kafka_CreatePartitions_result_topics(result, &count);
    check_topics(topics, count, "partitions of " + name);
    await_partitions(handle_.get(), name, total);
}

void kafka_admin::configure_topic(const std::string& name, const kafka_settings& settings) {
    const resource_ptr resource{::rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name.c_str())};
    for (const auto& [setting, value] : settings)
        check(::rd_kafka_ConfigResource_set_config(resource.get(), setting.c_str(), value.c_str()), setting);
    auto* request = resource.get();
    const auto what = "configuring " + name;
    const auto event = ask(handle_.get(), what, [&](auto* options, auto* queue) {
        ::rd_kafka_AlterConfigs(handle_.get(), &request, 1, options, queue);
    });
    std::size_t count = 0;
    const auto* result = ::rd_kafka_event_AlterConfigs_result(event.get());
    const auto** resources = ::rd_kafka_AlterConfigs_result_resources(result, &count);
    for (std::size_t i = 0; i < count; ++i) {
        if (::rd_kafka_ConfigResource_error(resources[i]) != RD_KAFKA_RESP_ERR_NO_ERROR)
            fail(what, ::rd_kafka_ConfigResource_error_string(resources[i]));
    }
}

void kafka_admin::deny(const std::string& topic, operation what) {
    text_buffer text{};
    auto rule = [&](rd_kafka_AclOperation_t code, rd_kafka_AclPermissionType_t permission) {
        acl_ptr acl{::rd_kafka_AclBinding_new(
            RD_KAFKA_RESOURCE_TOPIC,
            topic.c_str(),
            RD_KAFKA_RESOURCE_PATTERN_LITERAL,
            "User:*",
            "*",
            code,
            permission,
            text.data(),
            text.size()
        )};
        if (!acl) fail("rule for " + topic, text.data());
        return acl;
    };
    // Without the first rule, the second would deny everything: rules exist, and none allows.
    const auto all = rule(RD_KAFKA_ACL_OPERATION_ALL, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW);
    const auto denial = rule(code_of(what), RD_KAFKA_ACL_PERMISSION_TYPE_DENY);
    std::array requests{all.get(), denial.get()};
    const auto event = ask(handle_.get(), "denying " + topic, [&](auto* options, auto* queue) {
        ::rd_kafka_CreateAcls(handle_.get(), requests.data(), requests.size(), options, queue);
    });
    std::size_t count = 0;
    const auto* result = ::rd_kafka_event_CreateAcls_result(event.get());
    const auto** results = ::rd_kafka_CreateAcls_result_acls(result, &count);
    for (std::size_t i = 0; i < count; ++i)
        check(::rd_kafka_acl_result_error(results[i]), "denying " + topic);
}

void kafka_admin::allow_all(const std::string& topic) {
    text_buffer text{};
    const acl_ptr filter{::rd_kafka_AclBindingFilter_new(
        RD_KAFKA_RESOURCE_TOPIC,
        topic.c_str(),
        RD_KAFKA_RESOURCE_PATTERN_LITERAL,
        nullptr,
        nullptr,
        RD_KAFKA_ACL_OPERATION_ANY,
        RD_KAFKA_ACL_PERMISSION_TYPE_ANY,
        text.data(),
        text.size()
    )};
    if (!filter) fail("rule for " + topic, text.data());
    auto* request = filter.get();
    const auto event = ask(handle_.get(), "allowing " + topic, [&](auto* options, auto* queue) {
        ::rd_kafka_DeleteAcls(handle_.get(), &request, 1, options, queue);
    });
    std::size_t count = 0;
    const auto* result = ::rd_kafka_event_DeleteAcls_result(event.get());
    const auto** responses = ::rd_kafka_DeleteAcls_result_responses(result, &count);
    for (std::size_t i = 0; i < count; ++i)
        check(::rd_kafka_DeleteAcls_result_response_error(responses[i]), "allowing " + topic);
}

topic_reader::topic_reader(const std::string& bootstrap, std::string topic, const kafka_settings& client)
    : handle_(make_handle(
          RD_KAFKA_CONSUMER,
          bootstrap,
          {{"group.id", "reader"}, {"enable.auto.commit", "false"}, {"enable.partition.eof", "true"}},
          client
      )),
      topic_(std::move(topic)) {
    ::rd_kafka_poll_set_consumer(handle_.get());
    const int partitions = partitions_of(handle_.get(), topic_);
    const list_ptr list{::rd_kafka_topic_partition_list_new(partitions)};
    for (int partition = 0; partition < partitions; ++partition)
        ::rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition)->offset =
            RD_KAFKA_OFFSET_BEGINNING;
    check(::rd_kafka_assign(handle_.get(), list.get()), "reading " + topic_);
    next_.assign(static_cast<std::size_t>(partitions), 0);
}

namespace {

/// Of a topic that was just made not every broker knows the leader at once.
std::int64_t end_of(
    rd_kafka_t* client,
    const std::string& topic,
    std::int32_t partition,
    std::chrono::steady_clock::time_point deadline
) {
    for (;;) {
        std::int64_t low = 0;
        std::int64_t high = 0;
        const auto code =
            ::rd_kafka_query_watermark_offsets(client, topic.c_str(), partition, &low, &high, patience_ms);
        const bool settles = code == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
                             code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
                             code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
                             code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
        if (!settles || std::chrono::steady_clock::now() >= deadline) {
            check(code, "the end of " + topic);
            return high;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
}

}  // namespace

std::vector<topic_record> topic_reader::read(std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::vector<std::int64_t> ends;
    for (std::size_t partition = 0; partition < next_.size(); ++partition) {
        ends.push_back(end_of(handle_.get(), topic_, static_cast<std::int32_t>(partition), deadline));
    }
    auto complete = [&] {
        for (std::size_t partition = 0; partition < ends.size(); ++partition)
            if (next_[partition] < ends[partition]) return false;
        return true;
    };
    std::vector<topic_record> records;
    while (!complete()) {
        if (std::chrono::steady_clock::now() > deadline)
            fail("reading " + topic_, "its end was not reached in time");
        if (auto record = poll(std::chrono::milliseconds{100})) records.push_back(std::move(*record));
    }
    return records;
}

std::optional<topic_record> topic_reader::poll(std::chrono::milliseconds limit) {
    const message_ptr message{::rd_kafka_consumer_poll(handle_.get(), static_cast<int>(limit.count()))};
    if (!message || message->partition < 0) return std::nullopt;
    auto& next = next_[static_cast<std::size_t>(message->partition)];
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        next = std::max(next, message->offset);
        return std::nullopt;
    }
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail("reading " + topic_, ::rd_kafka_message_errstr(message.get()));
    next = message->offset + 1;
    return to_record(*message);
}

std::vector<topic_record> topic_reader::next(std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::vector<topic_record> records;
    do {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now()
        );
        if (auto first = poll(std::max(left, std::chrono::milliseconds{0})))
            records.push_back(std::move(*first));
    } while (records.empty() && std::chrono::steady_clock::now() < deadline);
    if (records.empty()) return records;
    while (auto more = poll(std::chrono::milliseconds{0}))
        records.push_back(std::move(*more));
    return records;
}

std::vector<topic_record> topic_reader::read_at_least(std::size_t count, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    std::vector<topic_record> records;
    while (records.size() < count && std::chrono::steady_clock::now() < deadline) {
        for (auto& record : read(limit))
            records.push_back(std::move(record));
    }
    return records;
}

std::vector<topic_record> read_topic(const std::string& bootstrap, const std::string& topic) {
    return topic_reader{bootstrap, topic}.read();
}

void write_topic(
    const std::string& bootstrap, const std::string& topic, const std::vector<topic_record>& records
) {
    const auto handle = make_handle(
        RD_KAFKA_PRODUCER,
        bootstrap,
        {{"enable.idempotence", "true"}, {"partitioner", "murmur2_random"}, {"message.timeout.ms", "10000"}},
        {}
    );
    std::string first_failure;
    for (const auto& record : records) {
        auto* const headers = ::rd_kafka_headers_new(record.headers.size());
        for (const auto& [name, value] : record.headers) {
            const auto part = part_of(value);
            check(
                ::rd_kafka_header_add(headers, name.c_str(), -1, part.ptr, static_cast<ssize_t>(part.size)),
                "header " + name
            );
        }
        const std::array arguments{
            rd_kafka_vu_t{.vtype = RD_KAFKA_VTYPE_TOPIC, .u = {.cstr = topic.c_str()}},
            rd_kafka_vu_t{.vtype = RD_KAFKA_VTYPE_PARTITION, .u = {.i32 = record.partition}},
            rd_kafka_vu_t{.vtype = RD_KAFKA_VTYPE_KEY, .u = {.mem = part_of(record.key)}},
            rd_kafka_vu_t{.vtype = RD_KAFKA_VTYPE_VALUE, .u = {.mem = part_of(record.value)}},
            rd_kafka_vu_t{.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u = {.i = RD_KAFKA_MSG_F_COPY}},
            rd_kafka_vu_t{.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u = {.i64 = record.timestamp}},
            rd_kafka_vu_t{.vtype = RD_KAFKA_VTYPE_HEADERS, .u = {.headers = headers}},
            rd_kafka_vu_t{.vtype = RD_KAFKA_VTYPE_OPAQUE, .u = {.ptr = &first_failure}}};
        const std::unique_ptr<rd_kafka_error_t, destroyer<rd_kafka_error_destroy>> error{
            ::rd_kafka_produceva(handle.get(), arguments.data(), arguments.size())};
        check(error.get(), "writing to " + topic);
    }
    check(::rd_kafka_flush(handle.get(), patience_ms), "writing to " + topic);
    if (!first_failure.empty()) fail("writing to " + topic, first_failure.c_str());
}

}  // namespace millrace::support
