/// The clients of one membership in a leader group: a consumer that is in the group and reads heartbeats, and
/// a producer that writes them.
///
/// Belongs to one thread, which calls `poll` when `wake_fd` becomes readable or `wake` is due. News are told
/// from within `poll` and `close`.
#pragma once

#include "handles.hpp"
#include "kafka_leader.hpp"

#include <millrace/error.hpp>
#include <millrace/log.hpp>
#include <millrace/time.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::kafka {

class leader_news {
public:
    virtual ~leader_news() = default;
    virtual void assigned(bool first_partition) = 0;
    virtual void revoked(bool in_order) = 0;  ///< `unassign` is to follow.
    virtual void record(std::string_view value) = 0;
    virtual void members(std::size_t count) = 0;
    virtual void trouble(error why) = 0;  ///< It goes on by itself.
    virtual void broken(error why) = 0;   ///< It is to be closed and made anew.
};

class leader_client {
public:
    /// Connects to nothing yet. `client_id` orders the members of a group, see `docs/lease-protocol.md`.
    /// References must outlive the client.
    [[nodiscard]] static result<std::unique_ptr<leader_client>> make(
        const kafka_leader_options& options,
        const std::string& client_id,
        int wake_fd,
        leader_news& news,
        log_sink& log
    );
    ~leader_client();
    leader_client(const leader_client&) = delete;
    leader_client& operator=(const leader_client&) = delete;

    /// True when there is more to do at once.
    [[nodiscard]] bool poll(mono_time now);
    [[nodiscard]] std::optional<mono_time> wake() const;

    void send(const std::string& heartbeat);
    void unassign();

    /// Asks how many members the group has, unless that is asked already; `members` tells. Without an answer
    /// for half an hour, also when it leads no more, `poll` calls for a new client.
    void count_members();

    /// Leaves the group. Blocks for five seconds at most; the session then lapses.
    void close();

private:
    leader_client(const kafka_leader_options& options, leader_news& news, log_sink& log);
    [[nodiscard]] result<void> open(const std::string& client_id, int wake_fd);
    void create_topic();
    void subscribe();
    void serve_admin();
    void topic_created(rd_kafka_event_t* event);
    void members_described(rd_kafka_event_t* event);
    void took(const rd_kafka_message_t& message);
    void failed(rd_kafka_resp_err_t code, const std::string& what);
    static void on_rebalance(
        rd_kafka_t* client, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t* partitions, void* self
    );
    static void on_error(rd_kafka_t* client, int code, const char* reason, void* self);
    static void on_log(const rd_kafka_t* client, int level, const char* facility, const char* text);

    const kafka_leader_options& options_;
    leader_news& news_;
    log_sink& log_;
    rd_kafka_t* consumer_{nullptr};
    rd_kafka_t* producer_{nullptr};
    topic_ptr heartbeats_;  ///< Held, so that the producer knows the topic before it is chosen.
    queue_ptr admin_;
    queue_ptr producer_queue_;
    queue_ptr consumer_queue_;
    mono_time now_{};
    bool creating_{false};
    std::optional<mono_time> counting_since_;
    bool subscribed_{false};
    bool closing_{false};
    std::optional<mono_time> create_at_{mono_time{}};  // at once
};

}  // namespace millrace::kafka
