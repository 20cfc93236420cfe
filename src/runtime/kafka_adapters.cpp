#ifdef MILLRACE_WITH_KAFKA

#include "kafka_adapters.hpp"

#include "dead_letters.hpp"
#include "kafka_leader.hpp"
#include "kafka_sink.hpp"
#include "kafka_url.hpp"
#include "process_identity.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace::kafka_adapters {

namespace {

result<std::unique_ptr<kafka_sink>> make_sink(const url& where, host& home, const sink_options& options) {
    auto cluster = parse_kafka_url(where.path);
    if (!cluster) return tl::unexpected(std::move(cluster.error()));
    kafka_sink_options chosen{.idle_partition = options.idle_partition, .outbox = options.outbox};
    // The relay's window is the bound; the client's own must never be met first.
    chosen.queued_rows_max = std::max(chosen.queued_rows_max, 2 * options.window_rows);
    chosen.queued_kbytes_max = std::max(chosen.queued_kbytes_max, options.window_bytes >> 8);
    return kafka_sink::open(home, std::move(*cluster), std::move(chosen));
}

}  // namespace

result<opened_sink> open_sink(const url& where, host& home, const sink_options& options) {
    auto made = make_sink(where, home, options);
    if (!made) return tl::unexpected(std::move(made.error()));
    auto* const sink = made->get();
    return opened_sink{std::move(*made), [sink](completion<void> done) { sink->look(std::move(done)); }};
}

result<opened_dead_letters> open_dead_letters(const url& where, const std::string& origin, host& home) {
    auto made = make_sink(where, home, {});
    if (!made) return tl::unexpected(std::move(made.error()));
    auto* const sink = made->get();
    return opened_dead_letters{
        std::make_unique<sink_dead_letters>(std::move(*made), where.stream, origin),
        [sink, topic = where.stream](completion<void> done) { sink->look(std::move(done), topic); }};
}

result<std::unique_ptr<group_leader>> open_group_leader(
    const leadership_options& options, const worker_id& worker, const url& sink, host& home
) {
    auto brokers = options.kafka.empty() ? result<url>(sink) : parse_url(options.kafka, url_role::sink);
    if (!brokers) return tl::unexpected(std::move(brokers.error()));
    if (brokers->scheme != "kafka") {
        return fail(
            errc::invalid_config,
            fmt::format(
                "leader group \"{}\" has no brokers: {} is no Kafka; name them for the leadership apart",
                options.group,
                brokers->given
            )
        );
    }
    auto cluster = parse_kafka_url(brokers->path);
    if (!cluster) return tl::unexpected(std::move(cluster.error()));
    kafka_leader_options chosen{
        .address = std::move(*cluster),
        .group = options.group,
        .topic = options.topic.empty() ? options.group + ".neli" : options.topic,
        .name = options.name,
        .heartbeat_timeout = options.heartbeat_timeout};
    if (chosen.name.empty()) chosen.name = worker.value();
    if (chosen.name.empty()) chosen.name = default_worker_id(this_process(), home.random()).value();
    std::replace(chosen.name.begin(), chosen.name.end(), '%', '_');
    return std::make_unique<kafka_leader>(home, std::move(chosen));
}

}  // namespace millrace::kafka_adapters

#endif
