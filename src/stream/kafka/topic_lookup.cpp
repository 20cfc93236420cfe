#include "topic_lookup.hpp"

#include "kafka_conf.hpp"
#include "kafka_error.hpp"
#include "producer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::kafka {

namespace {

constexpr std::size_t topics_at_once = 100;

using metadata_ptr = std::unique_ptr<const rd_kafka_metadata_t, destroyer<rd_kafka_metadata_destroy>>;
using config_ptr = std::unique_ptr<rd_kafka_ConfigResource_t, destroyer<rd_kafka_ConfigResource_destroy>>;

struct replicas_of {
    std::int32_t partition;
    int in_sync;
    int all;
};
using replicas = std::vector<replicas_of>;

/// In order, and each once.
void tidy(std::vector<std::int32_t>& partitions) {
    std::sort(partitions.begin(), partitions.end());
    partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
}

/// What the configuration of a topic says of records.
void read_config(const rd_kafka_ConfigResource_t* topic, const replicas& in_sync, topic_facts& into) {
    std::size_t count = 0;
    const auto* const* const entries = rd_kafka_ConfigResource_configs(topic, &count);
    for (std::size_t i = 0; i < count; ++i) {
        const char* const text = rd_kafka_ConfigEntry_value(entries[i]);
        const std::string_view name = rd_kafka_ConfigEntry_name(entries[i]);
        const std::string_view value = text == nullptr ? "" : text;
        if (name == "cleanup.policy") into.compacted = value.find("compact") != std::string_view::npos;
        if (name != "max.message.bytes" && name != "min.insync.replicas") continue;
        std::size_t limit = 0;
        const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), limit);
        if (fault != std::errc{} || end != value.data() + value.size()) continue;
        if (name == "min.insync.replicas") {
            for (const auto& one : in_sync)
                if (lacks_replicas(one.in_sync, one.all, limit)) into.seen_unwell.push_back(one.partition);
            continue;
        }
        into.row_bytes_max = limit;
        into.batch_bytes_max = limit;
        into.described = true;
    }
}

}  // namespace

struct topic_lookup::impl {
    impl(kafka_address to, log_sink& log_to, milliseconds wait, answer tell_whom)
        : cluster(std::move(to)), log(log_to), limit(wait), tell(std::move(tell_whom)), thread([this] {
              run();
          }) {}

    ~impl() {
        {
            const std::lock_guard lock(mutex);
            ending = true;
        }
        wake.notify_one();
        thread.join();
    }

    void run();
    void look_up(const std::vector<std::string>& topics);
    [[nodiscard]] result<topic_facts> metadata_of(const std::string& topic);
    void describe(std::vector<std::pair<std::string, result<topic_facts>>>& topics);
    [[nodiscard]] result<void> connect();
    [[nodiscard]] result<void> look(const std::string& topic);
    [[nodiscard]] error unreachable(rd_kafka_resp_err_t code);
    [[nodiscard]] bool looks_no_more() {
        const std::lock_guard lock(mutex);
        return winding_down || ending;
    }

    const kafka_address cluster;
    log_sink& log;
    const milliseconds limit;
    const answer tell;

    std::mutex mutex;
    std::condition_variable wake;
    bool winding_down{false};
    bool ending{false};
    std::deque<std::string> asked;
    std::deque<std::function<void()>> jobs;

    std::map<std::string, replicas, std::less<>> in_sync;  // the thread's, of the topics that are looked up
    client_ptr client;                                     // the thread's
    queue_ptr errors;
    recent_cause cause;
    std::thread thread;
};

void topic_lookup::impl::run() {
    std::unique_lock lock(mutex);
    for (;;) {
        wake.wait(lock, [this] { return ending || !asked.empty() || !jobs.empty(); });
        if (!jobs.empty()) {
            auto job = std::move(jobs.front());
            jobs.pop_front();
            lock.unlock();
            job();
            job = nullptr;  // what it holds may take time to destroy
            lock.lock();
            continue;
        }
        if (ending) break;
        const auto count = std::min(asked.size(), topics_at_once);
        const std::vector<std::string> topics(
            asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(count)
        );
        lock.unlock();
        look_up(topics);
        lock.lock();
    }
    lock.unlock();
    errors.reset();
    client.reset();
}

result<void> topic_lookup::impl::connect() {
    if (client) return {};
    auto conf = make_conf(cluster, client_kind::producer);
    if (!conf) return tl::unexpected(std::move(conf.error()));
    auto made = make_producer_client(std::move(*conf), RD_KAFKA_EVENT_ERROR, log, cluster.servers);
    if (!made) return tl::unexpected(std::move(made.error()));
    client = std::move(*made);
    errors.reset(rd_kafka_queue_get_main(client.get()));
    return {};
}

/// librdkafka says "timed out"; why is in the events that came meanwhile.
error topic_lookup::impl::unreachable(rd_kafka_resp_err_t code) {
    const mono_time now{std::chrono::steady_clock::now().time_since_epoch()};
    std::optional<error> why;
    while (const event_ptr event{rd_kafka_queue_poll(errors.get(), 0)}) {
        const auto failed = rd_kafka_event_error(event.get());
        if (failed == RD_KAFKA_RESP_ERR_NO_ERROR || failed == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) continue;
        why = cause.behind(
            client_error(failed, rd_kafka_event_error_string(event.get()), cluster.servers), now
        );
    }
    return why ? *why : cause.behind(client_error(code, {}, cluster.servers), now);
}

result<topic_facts> topic_lookup::impl::metadata_of(const std::string& topic) {
    const topic_ptr handle(rd_kafka_topic_new(client.get(), topic.c_str(), nullptr));
    topic_facts facts;
    if (!handle) {
        facts.trouble =
            record_error(RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, RD_KAFKA_MSG_STATUS_NOT_PERSISTED, topic);
        return facts;
    }
    const rd_kafka_metadata_t* raw = nullptr;
    const auto code = rd_kafka_metadata(client.get(), 0, handle.get(), &raw, static_cast<int>(limit.count()));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(unreachable(code));
    cause.forget();
    const metadata_ptr found(raw);
    const auto* const seen = found->topic_cnt > 0 ? &found->topics[0] : nullptr;
    auto trouble = seen == nullptr ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : seen->err;
    if (trouble == RD_KAFKA_RESP_ERR_NO_ERROR && seen->partition_cnt == 0)
        trouble = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
    if (trouble == RD_KAFKA_RESP_ERR_NO_ERROR) {
        facts.partitions = seen->partition_cnt;
        auto& counts = in_sync[topic];
        for (int i = 0; i < seen->partition_cnt; ++i) {
            const auto& partition = seen->partitions[i];
            counts.push_back({partition.id, partition.isr_cnt, partition.replica_cnt});
            if (partition.leader < 0) facts.seen_unwell.push_back(partition.id);
        }
        return facts;
    }
    auto why = record_error(trouble, RD_KAFKA_MSG_STATUS_NOT_PERSISTED, topic);
    if (why.code != errc::refused_topic) return tl::unexpected(std::move(why));
    facts.trouble = std::move(why);
    return facts;
}

void topic_lookup::impl::describe(std::vector<std::pair<std::string, result<topic_facts>>>& topics) {
    std::vector<config_ptr> owned;
    std::vector<rd_kafka_ConfigResource_t*> raw;
    for (const auto& [name, facts] : topics) {
        if (!facts || facts->trouble) continue;
        owned.emplace_back(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name.c_str()));
        raw.push_back(owned.back().get());
    }
    if (raw.empty()) return;
    const queue_ptr replies(rd_kafka_queue_new(client.get()));
    const std::unique_ptr<rd_kafka_AdminOptions_t, destroyer<rd_kafka_AdminOptions_destroy>> options(
        rd_kafka_AdminOptions_new(client.get(), RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS)
    );
    std::array<char, 128> why{};
    (void)rd_kafka_AdminOptions_set_request_timeout(
        options.get(), static_cast<int>(limit.count()), why.data(), why.size()
    );
    rd_kafka_DescribeConfigs(client.get(), raw.data(), raw.size(), options.get(), replies.get());
    const event_ptr event(rd_kafka_queue_poll(replies.get(), static_cast<int>(2 * limit.count())));
    const auto* const reply = event ? rd_kafka_event_DescribeConfigs_result(event.get()) : nullptr;
    if (reply == nullptr || rd_kafka_event_error(event.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
    std::size_t count = 0;
    const auto* const* const resources = rd_kafka_DescribeConfigs_result_resources(reply, &count);
    for (std::size_t i = 0; i < count; ++i) {
        if (rd_kafka_ConfigResource_error(resources[i]) != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
        const std::string_view name = rd_kafka_ConfigResource_name(resources[i]);
        for (auto& [topic, facts] : topics) {
            if (topic == name && facts) read_config(resources[i], in_sync[topic], *facts);
        }
    }
}

void topic_lookup::impl::look_up(const std::vector<std::string>& topics) {
    std::vector<std::pair<std::string, result<topic_facts>>> found;
    if (auto usable = connect(); !usable) {
        for (const auto& topic : topics)
            found.emplace_back(topic, tl::unexpected(usable.error()));
    } else {
        for (const auto& topic : topics) {
            // Once one was not answered, the others would wait as long each.
            const auto lost = !found.empty() && !found.back().second;
            found.emplace_back(topic, lost ? found.back().second : metadata_of(topic));
        }
        describe(found);
        for (auto& [topic, facts] : found)
            if (facts) tidy(facts->seen_unwell);
    }
    in_sync.clear();
    {
        const std::lock_guard lock(mutex);
        asked.erase(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(topics.size()));
        if (ending) return;
    }
    for (auto& [topic, facts] : found)
        tell(topic, std::move(facts));
}

result<void> topic_lookup::impl::look(const std::string& topic) {
    if (looks_no_more()) return fail(errc::cancelled, "the sink is closed before it was looked at");
    if (auto usable = connect(); !usable) return usable;
    if (!topic.empty()) {
        const auto facts = metadata_of(topic);
        if (!facts) return tl::unexpected(facts.error());
        if (facts->trouble) return tl::unexpected(*facts->trouble);
        return {};
    }
    const rd_kafka_metadata_t* raw = nullptr;
    const auto code = rd_kafka_metadata(client.get(), 0, nullptr, &raw, static_cast<int>(limit.count()));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return tl::unexpected(unreachable(code));
    cause.forget();
    rd_kafka_metadata_destroy(raw);
    return {};
}

topic_lookup::topic_lookup(kafka_address cluster, log_sink& log, milliseconds limit, answer tell)
    : impl_(std::make_unique<impl>(std::move(cluster), log, limit, std::move(tell))) {}

topic_lookup::~topic_lookup() = default;

void topic_lookup::ask(const std::string& topic) {
    {
        const std::lock_guard lock(impl_->mutex);
        if (std::ranges::find(impl_->asked, topic) != impl_->asked.end()) return;
        impl_->asked.push_back(topic);
    }
    impl_->wake.notify_one();
}

void topic_lookup::look(std::string topic, std::function<void(result<void>)> done) {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->jobs.emplace_back([me = impl_.get(), topic = std::move(topic), done = std::move(done)] {
            done(me->look(topic));
        });
    }
    impl_->wake.notify_one();
}

void topic_lookup::wind_down() {
    const std::lock_guard lock(impl_->mutex);
    impl_->winding_down = true;
}

void topic_lookup::destroy(client_ptr client) {
    {
        const std::lock_guard lock(impl_->mutex);
        impl_->jobs.emplace_back([client = std::move(client)] { (void)client; });
    }
    impl_->wake.notify_one();
}

}  // namespace millrace::kafka
