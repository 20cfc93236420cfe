#include "leader_client.hpp"

#include "kafka_conf.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace millrace::kafka {

namespace {

// Of one `poll`, so that a busy topic cannot keep the thread from its clock.
constexpr int messages_max = 100;

// Enough for the first heartbeat to be among them, although it may be written before the end is looked up.
constexpr std::int64_t read_back = 16;

constexpr int admin_timeout_ms = 5'000;
constexpr int count_timeout_ms = 3'600'000;  // the most that librdkafka takes
constexpr auto count_answer_max = std::chrono::minutes{30};
constexpr auto create_again_after = std::chrono::seconds{5};
constexpr auto close_limit = std::chrono::seconds{5};
// A member learns by its next heartbeat that another has left: no hand-over is faster.
constexpr auto heartbeat_most = milliseconds{300};
constexpr auto rebalance_least = std::chrono::seconds{60};
constexpr const char* heartbeats_kept_ms = "3600000";

std::string ms(nanoseconds span) {
    return std::to_string(std::chrono::duration_cast<milliseconds>(span).count());
}

std::vector<kafka_property> consumer_properties(
    const kafka_leader_options& options, const std::string& client_id
) {
    const auto session = options.session_timeout();
    std::vector<kafka_property> own{
        {"group.id", options.group},
        {"session.timeout.ms", ms(session)},
        {"heartbeat.interval.ms", ms(std::min<nanoseconds>(session / 6, heartbeat_most))},
        {"max.poll.interval.ms", ms(std::max<nanoseconds>(session, rebalance_least))},
        {"partition.assignment.strategy", "range,roundrobin"},  // as goneli: the classic, eager protocol
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"auto.offset.reset", "latest"},
        {"allow.auto.create.topics", "false"},
        {"topic.metadata.refresh.interval.ms", "10000"},
        {"queued.min.messages", "100"},
        {"queued.max.messages.kbytes", "1024"},
    };
    if (options.address.find("client.id") == nullptr) own.push_back({"client.id", client_id});
    return own;
}

std::vector<kafka_property> producer_properties(const kafka_leader_options& options) {
    return {
        {"message.timeout.ms", ms(options.heartbeat_timeout)},
        {"linger.ms", "0"},
        {"queue.buffering.max.messages", "100"},
    };
}

void wake_by(rd_kafka_queue_t* queue, int fd) {
    const std::uint64_t one = 1;
    rd_kafka_queue_io_event_enable(queue, fd, &one, sizeof one);
}

}  // namespace

leader_client::leader_client(const kafka_leader_options& options, leader_news& news, log_sink& log)
    : options_(options), news_(news), log_(log) {}

result<std::unique_ptr<leader_client>> leader_client::make(
    const kafka_leader_options& options,
    const std::string& client_id,
    int wake_fd,
    leader_news& news,
    log_sink& log
) {
    std::unique_ptr<leader_client> made(new leader_client(options, news, log));
    if (auto opened = made->open(client_id, wake_fd); !opened) return tl::unexpected(opened.error());
    return made;
}

result<void> leader_client::open(const std::string& client_id, int wake_fd) {
    const auto start = [&](client_kind kind, const std::vector<kafka_property>& own) -> result<rd_kafka_t*> {
        auto conf = make_conf(options_.address, kind, own);
        if (!conf) return tl::unexpected(std::move(conf.error()));
        rd_kafka_conf_set_opaque(conf->get(), this);
        rd_kafka_conf_set_log_cb(conf->get(), &leader_client::on_log);
        rd_kafka_conf_set_error_cb(conf->get(), &leader_client::on_error);
        const bool consumes = kind == client_kind::consumer;
        if (consumes) rd_kafka_conf_set_rebalance_cb(conf->get(), &leader_client::on_rebalance);
        char why[512] = "";
        auto* made =
            rd_kafka_new(consumes ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER, conf->get(), why, sizeof why);
        if (made == nullptr) {
            return fail(
                errc::invalid_config,
                fmt::format(
                    "a Kafka client for leader group \"{}\" cannot be made: {}",
                    options_.group,
                    fault_of_client(**conf, why)
                )
            );
        }
        (void)conf->release();  // the client has it now
        return made;
    };
    auto producer = start(client_kind::producer, producer_properties(options_));
    if (!producer) return tl::unexpected(std::move(producer.error()));
    producer_ = *producer;
    auto consumer = start(client_kind::consumer, consumer_properties(options_, client_id));
    if (!consumer) return tl::unexpected(std::move(consumer.error()));
    consumer_ = *consumer;
    rd_kafka_poll_set_consumer(consumer_);
    admin_.reset(rd_kafka_queue_new(producer_));
    producer_queue_.reset(rd_kafka_queue_get_main(producer_));
    consumer_queue_.reset(rd_kafka_queue_get_consumer(consumer_));
    wake_by(admin_.get(), wake_fd);
    wake_by(producer_queue_.get(), wake_fd);
    wake_by(consumer_queue_.get(), wake_fd);
    return {};
}

leader_client::~leader_client() {
    closing_ = true;
    heartbeats_.reset();
    admin_.reset();
    producer_queue_.reset();
    consumer_queue_.reset();
    if (consumer_ != nullptr) rd_kafka_destroy_flags(consumer_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    if (producer_ == nullptr) return;
    rd_kafka_purge(producer_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_destroy(producer_);
}

bool leader_client::poll(mono_time now) {
    now_ = now;
    if (create_at_ && now >= *create_at_) create_topic();
    serve_admin();
    if (counting_since_ && now - *counting_since_ >= count_answer_max) {
        news_.broken(
            {errc::unavailable,
             retry_advice::after_delay,
             false,
             fmt::format("the coordinator of leader group \"{}\" has long not answered", options_.group)}
        );
    }
    rd_kafka_poll(producer_, 0);
    for (int i = 0; i < messages_max; ++i) {
        auto* message = rd_kafka_consumer_poll(consumer_, 0);
        if (message == nullptr) return false;
        took(*message);
        rd_kafka_message_destroy(message);
    }
    return true;
}

std::optional<mono_time> leader_client::wake() const {
    return create_at_;
}

void leader_client::took(const rd_kafka_message_t& message) {
    if (message.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return failed(message.err, rd_kafka_message_errstr(&message));
    }
    if (message.partition != 0) return;
    news_.record({static_cast<const char*>(message.payload), message.len});
}

void leader_client::send(const std::string& heartbeat) {
    rd_kafka_vu_t parts[4]{};
    parts[0].vtype = RD_KAFKA_VTYPE_TOPIC;
    parts[0].u.cstr = options_.topic.c_str();
    parts[1].vtype = RD_KAFKA_VTYPE_PARTITION;
    parts[1].u.i32 = 0;
    parts[2].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
    parts[2].u.i = RD_KAFKA_MSG_F_COPY;
    parts[3].vtype = RD_KAFKA_VTYPE_VALUE;
    parts[3].u.mem = {const_cast<char*>(heartbeat.data()), heartbeat.size()};
    // What does not get out is missed like one that gets lost, and the next is near.
    using client_error = std::unique_ptr<rd_kafka_error_t, destroyer<rd_kafka_error_destroy>>;
    const client_error refused(rd_kafka_produceva(producer_, parts, std::size(parts)));
    if (refused) failed(rd_kafka_error_code(refused.get()), rd_kafka_error_string(refused.get()));
}

void leader_client::unassign() {
    if (consumer_ != nullptr) rd_kafka_assign(consumer_, nullptr);
}

void leader_client::create_topic() {
    create_at_.reset();
    if (std::exchange(creating_, true)) return;
    char why[256] = "";
    using new_topic = std::unique_ptr<rd_kafka_NewTopic_t, destroyer<rd_kafka_NewTopic_destroy>>;
    const new_topic topic(rd_kafka_NewTopic_new(options_.topic.c_str(), 1, -1, why, sizeof why));
    rd_kafka_NewTopic_set_config(topic.get(), "retention.ms", heartbeats_kept_ms);
    using admin_options = std::unique_ptr<rd_kafka_AdminOptions_t, destroyer<rd_kafka_AdminOptions_destroy>>;
    const admin_options options(rd_kafka_AdminOptions_new(producer_, RD_KAFKA_ADMIN_OP_CREATETOPICS));
    rd_kafka_AdminOptions_set_request_timeout(options.get(), admin_timeout_ms, why, sizeof why);
    rd_kafka_NewTopic_t* topics[] = {topic.get()};
    rd_kafka_CreateTopics(producer_, topics, 1, options.get(), admin_.get());
}

// librdkafka aborts the process when a coordinator comes back after a question to it has timed out. So none
// ever does: it is given the longest time that there is, and a client whose question is that old is made
// anew.
void leader_client::count_members() {
    if (counting_since_) return;
    counting_since_ = now_;
    char why[256] = "";
    using admin_options = std::unique_ptr<rd_kafka_AdminOptions_t, destroyer<rd_kafka_AdminOptions_destroy>>;
    const admin_options options(rd_kafka_AdminOptions_new(producer_, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS)
    );
    rd_kafka_AdminOptions_set_request_timeout(options.get(), count_timeout_ms, why, sizeof why);
    const char* groups[] = {options_.group.c_str()};
    rd_kafka_DescribeConsumerGroups(producer_, groups, 1, options.get(), admin_.get());
}

void leader_client::serve_admin() {
    while (const event_ptr event{rd_kafka_queue_poll(admin_.get(), 0)}) {
        switch (rd_kafka_event_type(event.get())) {
            case RD_KAFKA_EVENT_CREATETOPICS_RESULT:
                topic_created(event.get());
                break;
            case RD_KAFKA_EVENT_DESCRIBECONSUMERGROUPS_RESULT:
                members_described(event.get());
                break;
            default:
                break;
        }
    }
}

// Without the right to make it, or with a broker that is away, it may be there all the same.
void leader_client::topic_created(rd_kafka_event_t* event) {
    creating_ = false;
    auto code = rd_kafka_event_error(event);
    std::string why = rd_kafka_err2str(code);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        std::size_t count = 0;
        const auto* topics =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
        if (count > 0) {
            code = rd_kafka_topic_result_error(topics[0]);
            why = rd_kafka_err2str(code);
        }
    }
    const bool there = code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS;
    if (!heartbeats_) heartbeats_.reset(rd_kafka_topic_new(producer_, options_.topic.c_str(), nullptr));
    if (!there) failed(code, fmt::format("topic \"{}\" cannot be made: {}", options_.topic, why));
    subscribe();
}

void leader_client::subscribe() {
    if (std::exchange(subscribed_, true)) return;
    using list =
        std::unique_ptr<rd_kafka_topic_partition_list_t, destroyer<rd_kafka_topic_partition_list_destroy>>;
    const list topics(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(topics.get(), options_.topic.c_str(), RD_KAFKA_PARTITION_UA);
    const auto code = rd_kafka_subscribe(consumer_, topics.get());
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    news_.broken(
        {errc::unavailable,
         retry_advice::after_delay,
         false,
         fmt::format("leader group \"{}\" cannot be joined: {}", options_.group, rd_kafka_err2str(code))}
    );
}

void leader_client::members_described(rd_kafka_event_t* event) {
    counting_since_.reset();
    if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
    std::size_t count = 0;
    const auto** groups = rd_kafka_DescribeConsumerGroups_result_groups(
        rd_kafka_event_DescribeConsumerGroups_result(event), &count
    );
    if (count == 0 || rd_kafka_ConsumerGroupDescription_error(groups[0]) != nullptr) return;
    news_.members(rd_kafka_ConsumerGroupDescription_member_count(groups[0]));
}

void leader_client::failed(rd_kafka_resp_err_t code, const std::string& what) {
    const bool no_topic =
        code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
    const bool denied = code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
                        code == RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED ||
                        code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED ||
                        code == RD_KAFKA_RESP_ERR__AUTHENTICATION;
    if (no_topic && !create_at_) create_at_ = now_ + create_again_after;
    news_.trouble(
        {denied     ? errc::permission_denied
         : no_topic ? errc::not_found
                    : errc::unavailable,
         retry_advice::after_delay,
         false,
         fmt::format(
             "leader group \"{}\" on topic \"{}\" at {}: {}",
             options_.group,
             options_.topic,
             options_.address.servers,
             what
         )}
    );
}

void leader_client::close() {
    closing_ = true;
    if (rd_kafka_error_t* refused = rd_kafka_consumer_close_queue(consumer_, consumer_queue_.get())) {
        rd_kafka_error_destroy(refused);
        return;
    }
    const auto begin = std::chrono::steady_clock::now();
    while (rd_kafka_consumer_closed(consumer_) == 0 && std::chrono::steady_clock::now() - begin < close_limit)
        rd_kafka_queue_poll_callback(consumer_queue_.get(), 50);
}

void leader_client::on_rebalance(
    rd_kafka_t* client, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t* partitions, void* self
) {
    auto& me = *static_cast<leader_client*>(self);
    if (me.closing_) {
        rd_kafka_assign(client, nullptr);
    } else if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        bool first = false;
        for (int i = 0; i < partitions->cnt; ++i) {
            auto& one = partitions->elems[i];
            first = first || one.partition == 0;
            one.offset =
                one.partition == 0 ? RD_KAFKA_OFFSET_TAIL(read_back) : std::int64_t{RD_KAFKA_OFFSET_END};
        }
        rd_kafka_assign(client, partitions);
        me.news_.assigned(first);
    } else if (code == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
        me.news_.revoked(rd_kafka_assignment_lost(client) == 0);
    } else {
        rd_kafka_assign(client, nullptr);
        me.failed(code, rd_kafka_err2str(code));
    }
}

void leader_client::on_error(rd_kafka_t* client, int code, const char* reason, void* self) {
    auto& me = *static_cast<leader_client*>(self);
    if (code != RD_KAFKA_RESP_ERR__FATAL) {
        return me.failed(static_cast<rd_kafka_resp_err_t>(code), reason);
    }
    char why[256] = "";
    rd_kafka_fatal_error(client, why, sizeof why);
    me.news_.broken({errc::unavailable, retry_advice::after_delay, false, why});
}

// On a thread of librdkafka.
void leader_client::on_log(const rd_kafka_t* client, int, const char* facility, const char* text) {
    auto& me = *static_cast<leader_client*>(rd_kafka_opaque(client));
    if (!me.log_.enabled(log_level::debug)) return;
    me.log_.write(log_level::debug, "leader.client", {{"facility", facility}, {"text", text}});
}

}  // namespace millrace::kafka
