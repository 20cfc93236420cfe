#include "kafka_conf.hpp"

#include "text/nearest.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace millrace::kafka {

namespace {

struct owned_property {
    std::string_view name;  ///< With a trailing dot or underscore: all that begin so.
    std::string_view why;
};

constexpr std::string_view guarantee = "the order and safety of rows rest on it";
constexpr std::string_view by_url = "the servers stand before the ? of the URL";
constexpr std::string_view by_relay =
    "the relay owns the time-outs: a row is tried until a broker has judged it";
constexpr std::string_view by_window =
    "the relay's client_window_rows and client_window_bytes bound what is queued";
constexpr std::string_view by_group = "Millrace joins groups under settings of its own";
constexpr std::string_view by_program = "it belongs to the program, not to the configuration";

constexpr std::array owned{
    owned_property{"enable.idempotence", guarantee},
    owned_property{"enable.gapless.guarantee", guarantee},
    owned_property{"acks", guarantee},
    owned_property{"request.required.acks", guarantee},
    owned_property{"max.in.flight", guarantee},
    owned_property{"max.in.flight.requests.per.connection", guarantee},
    owned_property{"retries", guarantee},
    owned_property{"message.send.max.retries", guarantee},
    owned_property{"queuing.strategy", guarantee},
    owned_property{"msg_order_cmp", guarantee},
    owned_property{"transactional.id", "Millrace uses no transactions here"},
    owned_property{"transaction.timeout.ms", "Millrace uses no transactions here"},
    owned_property{"message.timeout.ms", by_relay},
    owned_property{"delivery.timeout.ms", by_relay},
    owned_property{"queue.buffering.max.messages", by_window},
    owned_property{"queue.buffering.max.kbytes", by_window},
    owned_property{"bootstrap.servers", by_url},
    owned_property{"metadata.broker.list", by_url},
    owned_property{"group.", by_group},
    owned_property{"partition.assignment.strategy", by_group},
    owned_property{"session.timeout.ms", by_group},
    owned_property{"heartbeat.interval.ms", by_group},
    owned_property{"max.poll.interval.ms", by_group},
    owned_property{"enable.auto.commit", by_group},
    owned_property{"enable.auto.offset.store", by_group},
    owned_property{"auto.", by_group},
    owned_property{"delivery.report.only.error", by_program},
    owned_property{"produce.offset.report", by_program},
    owned_property{"dr_", by_program},
    owned_property{"enabled_events", by_program},
    owned_property{"opaque", by_program},
    owned_property{"default_topic_conf", by_program},
    owned_property{"log.queue", by_program},
    owned_property{"internal.termination.signal", by_program},
    owned_property{
        "sasl.jaas.config",
        "it is the Java client's; sasl.mechanism, sasl.username and sasl.password say the same here"},
    owned_property{"statistics.interval.ms", "Millrace has metrics of its own"},
    owned_property{"test.", "it is for librdkafka's own tests"},
    owned_property{"ut_", "it is for librdkafka's own tests"},
};

/// Properties that librdkafka warns of in a consumer.
constexpr std::array<std::string_view, 10> of_producers{
    "linger.ms",
    "queue.buffering.max.ms",
    "queue.buffering.backpressure.threshold",
    "compression.",
    "batch.",
    "partitioner",
    "sticky.partitioning.linger.ms",
    "request.timeout.ms",
    "retry.backoff.",
    "topic.metadata.propagation.max.ms"};

bool matches(std::string_view pattern, std::string_view name) {
    return pattern.ends_with('.') || pattern.ends_with('_') ? name.starts_with(pattern) : name == pattern;
}

tl::unexpected<error> refused(const kafka_property& property, std::string_view why) {
    return fail(
        errc::invalid_config,
        fmt::format("the Kafka property {} can not be set: {}; leave it out", property.name, why)
    );
}

result<void> check_owned(const kafka_property& property) {
    const auto* const mine =
        std::ranges::find_if(owned, [&](const owned_property& o) { return matches(o.name, property.name); });
    if (mine != owned.end()) return refused(property, mine->why);
    if (property.name.ends_with("_cb") || property.name.ends_with("_callback"))
        return refused(property, by_program);
    if (property.name == "partitioner" && property.value == "random")
        return refused(property, "rows of one key would go to several partitions and lose their order");
    return {};
}

/// All that librdkafka knows, aliases too: the first column of the table that it prints for people.
std::vector<std::string> known_properties() {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const out = open_memstream(&text, &size);
    if (out == nullptr) return {};
    rd_kafka_conf_properties_show(out);
    std::fclose(out);
    const std::unique_ptr<char, destroyer<std::free>> owned_text(text);
    std::vector<std::string> names;
    std::string_view rest(text, size);
    while (!rest.empty()) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        const auto end = line.find_first_of(" |");
        if (end != std::string_view::npos && line.find('|') != std::string_view::npos)
            names.emplace_back(line.substr(0, end));
    }
    return names;
}

std::string hint_for(std::string_view name) {
    const auto names = known_properties();
    const std::vector<std::string_view> known(names.begin(), names.end());
    return did_you_mean(name, known);
}

result<void> set(rd_kafka_conf_t& conf, const kafka_property& property) {
    std::array<char, 512> text{};
    const auto done =
        rd_kafka_conf_set(&conf, property.name.c_str(), property.value.c_str(), text.data(), text.size());
    if (done == RD_KAFKA_CONF_OK) return {};
    if (done == RD_KAFKA_CONF_UNKNOWN)
        return fail(
            errc::invalid_config,
            fmt::format(
                "librdkafka {} has no property \"{}\"{}",
                rd_kafka_version_str(),
                property.name,
                hint_for(property.name)
            )
        );
    std::string_view why(text.data());
    while (why.ends_with('\n'))
        why.remove_suffix(1);
    // librdkafka's sentence may repeat the value.
    if (is_kafka_secret(property.name))
        return fail(errc::invalid_config, fmt::format("the Kafka property {}: not usable", property.name));
    return fail(
        errc::invalid_config, fmt::format("the Kafka property {}={}: {}", property.name, property.value, why)
    );
}

bool is_for(client_kind kind, std::string_view name) {
    return kind == client_kind::producer ||
           std::ranges::none_of(of_producers, [&](std::string_view p) { return matches(p, name); });
}

}  // namespace

result<void> check_scram(const kafka_address& address, int version) {
    constexpr int scram_works = 0x02'06'01'00;
    const auto* mechanism = address.find("sasl.mechanism");
    if (mechanism == nullptr) mechanism = address.find("sasl.mechanisms");
    if (mechanism == nullptr || !mechanism->starts_with("SCRAM") || version >= scram_works) return {};
    return fail(
        errc::invalid_config,
        fmt::format(
            "{} does not work with this librdkafka ({}.{}.{}): brokers since Kafka 3.8.1 refuse its nonce as "
            "invalid credentials; build Millrace with 2.6.1 or newer (./dev librdkafka), or use another "
            "mechanism",
            *mechanism,
            version >> 24,
            (version >> 16) & 0xff,
            (version >> 8) & 0xff
        )
    );
}

result<conf_ptr> make_conf(
    const kafka_address& address, client_kind kind, std::span<const kafka_property> own
) {
    if (auto usable = check_scram(address, rd_kafka_version()); !usable)
        return tl::unexpected(std::move(usable.error()));
    conf_ptr conf(rd_kafka_conf_new());
    std::vector<kafka_property> all{{"bootstrap.servers", address.servers}, {"client.id", "millrace"}};
    for (const auto& property : address.properties) {
        if (auto allowed = check_owned(property); !allowed) return tl::unexpected(std::move(allowed.error()));
        // Each is tried on a configuration of its own kind, so that a fault is found whatever the client.
        if (is_for(kind, property.name)) {
            all.push_back(property);
        } else if (auto valid = set(*conf_ptr(rd_kafka_conf_new()), property); !valid) {
            return tl::unexpected(std::move(valid.error()));
        }
    }
    all.insert(all.end(), own.begin(), own.end());
    for (const auto& property : all) {
        if (auto done = set(*conf, property); !done) return tl::unexpected(std::move(done.error()));
    }
    return conf;
}

result<void> check_properties(const kafka_address& address) {
    return make_conf(address, client_kind::producer).map([](const conf_ptr&) {});
}

std::string fault_of_client(const rd_kafka_conf_t& conf, std::string_view why) {
    for (const char* const name :
         {"ssl.ca.location",
          "ssl.certificate.location",
          "ssl.key.location",
          "ssl.keystore.location",
          "ssl.crl.location"}) {
        std::array<char, 1024> file{};
        auto size = file.size();
        if (why.find(name) != std::string_view::npos &&
            rd_kafka_conf_get(&conf, name, file.data(), &size) == RD_KAFKA_CONF_OK)
            return fmt::format(
                "{} ({} is \"{}\"; see whether that file is there and readable)", why, name, file.data()
            );
    }
    return std::string(why);
}

}  // namespace millrace::kafka
