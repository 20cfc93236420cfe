#include "sink_parts.hpp"

#include "kafka_conf.hpp"
#include "kafka_error.hpp"
#include "record_size.hpp"

#include <array>

#include <fmt/core.h>

namespace millrace::kafka {

namespace {

constexpr std::size_t topics_max = 10'000;  // beyond, idle ones are forgotten and asked for again
constexpr auto ask_again_after = std::chrono::milliseconds{100};
constexpr auto log_again_after = std::chrono::seconds{30};

}  // namespace

std::uint32_t request_table::add(std::unique_ptr<request> r) {
    if (free_.empty()) {
        slots_.push_back(std::move(r));
        return static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const auto number = free_.back();
    free_.pop_back();
    slots_[number] = std::move(r);
    return number;
}

std::unique_ptr<request> request_table::take(std::uint32_t number) {
    free_.push_back(number);
    return std::move(slots_[number]);
}

sink_parts::sink_parts(host& on, kafka_address to, kafka_sink_options with, partitioner hashing)
    : home(on), log(on.log()), cluster(std::move(to)), options(std::move(with)), by(hashing) {}

topic_entry& sink_parts::topic(std::string_view name) {
    if (last_ != nullptr && last_->name == name) return *last_;
    const std::string key(name);
    auto found = topics.find(key);
    if (found == topics.end()) {
        if (topics.size() >= topics_max) {
            last_ = nullptr;
            std::erase_if(topics, [](const auto& t) {
                return t.second->under_way == 0 && !t.second->on_main && !t.second->on_probe &&
                       !t.second->asking;
            });
        }
        found = topics.emplace(key, std::make_unique<topic_entry>()).first;
        found->second->name = key;
    }
    last_ = found->second.get();
    return *last_;
}

void sink_parts::ask(topic_entry& which, mono_time now) {
    if (which.asking || now < which.ask_at) return;
    which.asking = true;
    which.ask_at = now + ask_again_after;
    lookup->ask(which.name);
}

void sink_parts::publish_facts(const topic_entry& which) {
    home.post(alive.guard([tell = known_on_host, name = which.name, facts = which.facts] {
        tell(name, facts);
    }));
}

void sink_parts::settle(std::uint32_t number, std::uint32_t place, std::optional<row_failure> failure) {
    auto& r = requests.at(number);
    r.places[place].topic = nullptr;
    if (failure) r.outcome.failures.push_back(std::move(*failure));
    if (++r.settled < r.rows.size()) return;
    auto done = requests.take(number);
    std::ranges::sort(done->outcome.failures, {}, &row_failure::id);
    auto outcome = std::make_shared<publish_outcome>(std::move(done->outcome));
    home.post([tell = std::move(done->done), outcome] { tell(std::move(*outcome)); });
}

std::size_t sink_parts::extra_bytes(const request& of) const {
    return of.header ? header_bytes(kafka_sink::outbox_header.size(), of.header->size()) : 0;
}

result<std::unique_ptr<producer>> sink_parts::make_producer(bool probe) {
    std::vector<kafka_property> own{
        {"enable.idempotence", "true"},
        {"enable.gapless.guarantee", probe ? "false" : "true"},
        {"message.timeout.ms", "0"},
        {"queue.buffering.max.messages", fmt::format("{}", options.queued_rows_max)},
        {"queue.buffering.max.kbytes", fmt::format("{}", options.queued_kbytes_max)},
        {"message.max.bytes", fmt::format("{}", probe ? probe_bytes_max : main_bytes_max)},
    };
    if (probe) {
        own.push_back({"batch.num.messages", "1"});
        own.push_back({"linger.ms", "0"});
    } else {
        own.push_back({"batch.size", fmt::format("{}", batch_bytes_max)});
        if (cluster.find("linger.ms") == nullptr && cluster.find("queue.buffering.max.ms") == nullptr)
            own.push_back({"linger.ms", "0"});
    }
    auto conf = make_conf(cluster, client_kind::producer, own);
    if (!conf) return tl::unexpected(std::move(conf.error()));
    return producer::create(std::move(*conf), wake, log, cluster.servers);
}

void sink_parts::on_error(rd_kafka_resp_err_t code, const char* reason) {
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        const std::lock_guard lock(counting);
        counts.connected = false;
    }
    on_trouble(client_error(code, reason == nullptr ? "" : reason, cluster.servers));
}

void sink_parts::on_trouble(error why) {
    const auto now = home.now();
    const auto& cause = cause_.behind(std::move(why), now);
    {
        const std::lock_guard lock(counting);
        counts.trouble = cause;
    }
    if (logged_code_ == cause.code && now < logged_ + log_again_after) return;
    logged_ = now;
    logged_code_ = cause.code;
    log.write(
        log_level::warning,
        "kafka.trouble",
        {{"code", std::string(name_of(cause.code))}, {"detail", cause.detail}}
    );
}

void sink_parts::on_answer() {
    const std::lock_guard lock(counting);
    counts.connected = true;
    if (!counts.trouble) return;
    counts.trouble.reset();
    logged_code_.reset();
    cause_.forget();
}

}  // namespace millrace::kafka
